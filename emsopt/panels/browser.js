// Name controls for screen readers, scroll to tabs, and save files.
function name(root) {
  for (const handle of root.querySelectorAll(".noUi-handle:not([aria-label])")) {
    const label = handle.closest(".widget-inline-hbox")?.querySelector(".widget-label")?.textContent;
    if (label) handle.setAttribute("aria-label", label);
  }
  for (const head of root.querySelectorAll(".emsopt-head"))
    head.setAttribute("aria-expanded", head.classList.contains("mod-active"));
  for (const tab of root.querySelectorAll(".emsopt-tabs > .widget-toggle-buttons button"))
    tab.setAttribute("aria-pressed", tab.classList.contains("mod-active"));
}
export default {
  render({model, el}) {
    let waiting = false, observer = null;
    const start = () => {
      const root = el.closest(".emsopt-dashboard");
      if (!root) return requestAnimationFrame(start);  // not on the page yet
      const soon = () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => { waiting = false; name(root); });
      };
      root.addEventListener("click", ({target}) => {  // on a low screen, tabs are below the map
        const tabs = target.closest(".emsopt-tabs > .widget-toggle-buttons")?.parentElement;
        const top = tabs?.getBoundingClientRect().top;
        if (top < 0 || top > 0.65 * innerHeight) tabs.scrollIntoView({behavior: "smooth"});
      });
      observer = new MutationObserver(soon);
      observer.observe(root, {childList: true, subtree: true, attributes: true, attributeFilter: ["class"]});
      name(root);
    };
    start();
    const save = (message, buffers) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([buffers[0]], {type: message.kind}));
      link.download = message.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    };
    model.on("msg:custom", save);
    return () => { observer?.disconnect(); model.off("msg:custom", save); };
  }
};
