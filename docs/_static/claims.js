"use strict";
// Filter the register of claims: rows that have the chosen verdict and all words.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".claims-filter");
  if (!form) return;
  const papers = [...document.querySelectorAll("details.claims")];
  const update = () => {
    const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = form.verdict.value;
    let all = 0;
    for (const paper of papers) {
      let shown = 0;
      for (const row of paper.querySelectorAll("tbody tr")) {
        const text = row.textContent.toLowerCase();
        row.hidden = (verdict && row.dataset.verdict !== verdict) || !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      paper.querySelector("summary span").textContent = shown;
      if (words.length || verdict) paper.open = shown > 0;
      all += shown;
    }
    form.querySelector("output").textContent = `${all} claims`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  update();
});
