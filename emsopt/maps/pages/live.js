// The widget: a map that follows its model in the notebook's kernel. Zoom and layers stay with the page.
export default {
  render({model, el}) {
    const root = make("div", "emsopt-map");
    let drawn = null;
    const port = {
      tiles: "https://tile.openstreetmap.org/{z}/{x}/{y}.png",  // asked for only if the reader switches that layer on
      get edit() { return model.get("edit"); },
      get shown() { return model.get("shown"); },
      press: place => model.send({place}),
      choose: name => {
        model.set("shown", name);
        model.save_changes();
      },
    };
    const start = () => {
      drawn?.remove();
      root.className = "emsopt-map";
      root.replaceChildren(make("p", "sentence", model.get("scene").sentence ?? ""));
      drawn = kinds[model.get("kind")]?.(root, model.get("scene"), model.get("views"), port);
    };
    const update = () => drawn?.update(model.get("views"));
    const followers = {"change:scene": () => keepFocus(root, start), "change:views": update, "change:edit": update, "change:shown": update};
    for (const [event, follow] of Object.entries(followers)) model.on(event, follow);
    el.style.height ||= "100%";  // a host that knows no layout of widgets
    el.append(root);
    start();
    return () => {
      for (const [event, follow] of Object.entries(followers)) model.off(event, follow);
      drawn?.remove();
    };
  },
};
