// A button that sends the files chosen by a visitor to the kernel, a piece at a time.
const PIECE = 4 * 2 ** 20;  // bytes: servers refuse messages of more than 10 MB
export default {
  render({model, el}) {
    const button = document.createElement("button"), input = document.createElement("input");
    const say = told => { button.textContent = `${model.get("description")} (${told})`; };
    const count = () => say(model.get("count"));
    const send = (message, pieces) => new Promise(resolve => {  // until the kernel has taken it
      const taken = () => { model.off("msg:custom", taken); resolve(); };
      model.on("msg:custom", taken);
      model.send(message, undefined, pieces);
    });
    button.className = "jupyter-widgets jupyter-button widget-button";
    button.style.cssText = "width: 100%; margin: 0";
    button.title = model.get("tooltip");
    Object.assign(input, {type: "file", accept: model.get("accept"), multiple: model.get("multiple")});
    button.onclick = () => { input.value = ""; input.click(); };
    input.onchange = async () => {
      const files = [...input.files], all = files.reduce((sum, file) => sum + file.size, 0);
      let sent = 0;
      button.disabled = true;
      try {
        await send({files: files.map(({name, size}) => ({name, size}))});
        for (const [k, file] of all <= model.get("most") ? files.entries() : [])
          for (let at = 0; at < file.size; at += PIECE) {
            const piece = await file.slice(at, at + PIECE).arrayBuffer();
            await send({file: k}, [piece]);
            say(`${Math.floor(100 * (sent += piece.byteLength) / all)} %`);
          }
        await send({done: true});
      } finally {
        button.disabled = false;
        count();
      }
    };
    el.append(button);
    model.on("change:count", count);
    count();
  }
};
