"use strict";
// Show widgets made with anywidget without a kernel, in the state in which the notebook left them.
document.addEventListener("DOMContentLoaded", async () => {
  for (const script of document.querySelectorAll('script[type="application/x-anywidget"]')) {
    const { _esm, _css, ...state } = JSON.parse(script.textContent);
    const listeners = {};
    const model = {
      get: (name) => state[name],
      set: (name, value) => {
        state[name] = value;
        for (const listener of listeners[`change:${name}`] ?? []) listener();
      },
      on: (event, listener) => (listeners[event] ??= []).push(listener),
      off: (event) => delete listeners[event],
      save_changes() {},
      send() {},
    };
    if (_css) document.head.append(Object.assign(document.createElement("style"), { textContent: _css }));
    const { default: found } = await import(URL.createObjectURL(new Blob([_esm], { type: "text/javascript" })));
    const widget = typeof found === "function" ? await found() : found;
    const el = document.createElement("div");
    script.after(el);
    await widget.initialize?.({ model });
    await widget.render({ model, el });
  }
});
