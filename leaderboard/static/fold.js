// What is folded: paper has all of it, and on a phone a row with many figures shows the first of them until it is asked
// for more. Without this script every figure stands there.
"use strict";

(function () {
  const FEW = 4;
  const { make } = veil;
  const shut = () => Array.from(document.querySelectorAll("details:not([open])"));
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = shut();
    opened.forEach((each) => { each.open = true; });
  });
  window.addEventListener("afterprint", () => {
    opened.forEach((each) => { each.open = false; });
    opened = [];
  });
  document.querySelectorAll("table.board tbody tr").forEach((row) => {
    const places = Array.from(row.querySelectorAll("td"));
    if (places.length <= FEW) return;
    places.slice(FEW).forEach((place) => place.classList.add("beyond"));
    const button = make("button", { type: "button", class: "unfold" });
    function fold(folded) {
      row.classList.toggle("folded", folded);
      button.setAttribute("aria-expanded", String(!folded));
      button.textContent = folded ? "Show all " + places.length : "Show " + FEW;
    }
    button.addEventListener("click", () => fold(!row.classList.contains("folded")));
    fold(true);
    row.querySelector("th").append(button);
  });
})();
