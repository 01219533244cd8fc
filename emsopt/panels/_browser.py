"""What only the browser can do for the dashboard: save a file, and name controls for screen readers."""

from __future__ import annotations

from anywidget import AnyWidget
from traitlets import Float

from ._uploads import most_mb

SCRIPT = """
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
      root.dataset.mostMb = model.get("most_mb");  // for the page's own check of files
      const soon = () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => { waiting = false; name(root); });
      };
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
"""


class Browser(AnyWidget):
    """An invisible widget inside the dashboard.

    Attributes
    ----------
    most_mb : float
        How many MB the chosen files may have together.
    """

    _esm = SCRIPT
    most_mb = Float().tag(sync=True)

    def __init__(self) -> None:
        super().__init__(most_mb=most_mb(), layout={"height": "0", "margin": "0", "overflow": "hidden"})

    def download(self, name: str, kind: str, content: bytes) -> None:
        """Save a file where the browser keeps downloads."""
        self.send({"name": name, "kind": kind}, buffers=[content])
