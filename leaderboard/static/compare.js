// Two or three rows side by side; which ones is in the address.
"use strict";

(function () {
  const { make, state, remember, rows } = veil;
  const MOST = 3;
  const form = document.getElementById("compare"), answer = document.getElementById("answer");
  const chosen = (state().get("rows") || "").split(",").filter(Boolean).slice(0, MOST);

  const name = (row) => [row.plugin, row.variant, "on", row.data, row.preset, row.seed ? "seed " + row.seed : ""].filter(Boolean).join(" ");

  window.addEventListener("load", () => {
    if (!rows.length) { answer.append("No rows yet."); return; }
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    pick();
    draw();
  });

  // Once a row is chosen, those come first that it compares with: the same data, size and seed.
  function pick() {
    const first = rows.find((row) => row.id === chosen[0]);
    const alike = (row) => first && row.section === first.section && row.preset === first.preset && row.seed === first.seed;
    form.replaceChildren(...Array.from({ length: MOST }, (_, place) => {
      const group = (label, some) => (some.length ? make("optgroup", { label }, some.map((row) => make("option", { value: row.id, selected: row.id === chosen[place] }, name(row)))) : null);
      const list = make("select", {}, make("option", { value: "" }, place < 2 ? "choose a row" : "and a third, if you like"),
        place && first ? [group("On the same data, at the same size", rows.filter(alike)), group("Elsewhere", rows.filter((row) => !alike(row)))] : group("Rows", rows));
      list.addEventListener("change", () => {
        chosen[place] = list.value;
        remember({ rows: chosen.filter(Boolean).join(",") });
        pick();
        draw();
      });
      return make("label", {}, ["First", "Second", "Third"][place] + " ", list);
    }));
  }

  function draw() {
    const ids = Array.from(new Set(chosen.filter(Boolean)));
    answer.replaceChildren();
    if (!ids.length) return;
    const found = new Array(ids.length);
    let left = ids.length;
    ids.forEach((id, place) => (rows.some((row) => row.id === id) ? veil.load : (_, tell) => tell(null))(id, (row) => {
      found[place] = row;
      left -= 1;
      if (!left) answer.replaceChildren(...shown(found.filter(Boolean)), found.includes(null) ? make("p", { class: "notes" }, "There is no row of the name " + ids[found.indexOf(null)] + ".") : "");
    }));
  }

  function shown(found) {
    if (!found.length) return [];
    const first = found[0];
    const apart = found.filter((row) => row.section !== first.section || row.preset !== first.preset || row.seed !== first.seed);
    const fact = (label, text) => make("tr", {}, make("th", { scope: "row" }, label), found.map((row) => make("td", {}, text(row))));
    const facts = veil.fields.filter((field) => field.places.includes("facts"));
    const body = facts.map((field) => fact(field.heading, (row) => (field.name === "verdict" ? veil.verdict(row) : field.name === "dataset" ? row.data : veil.text(row[field.name]))));
    const known = new Map(found.flatMap(veil.shown).map(({ column }) => [column.name, column]));
    let group = "";
    Array.from(known.values()).sort((a, b) => a.order - b.order).forEach((column) => {
      if (column.group !== group) {
        group = column.group;
        body.push(make("tr", { class: "group" }, make("th", { scope: "colgroup", colspan: found.length + 1 }, group)));
      }
      body.push(make("tr", {}, make("th", { scope: "row" }, veil.heading(column)), found.map((row) => figure(row, column))));
    });
    const tested = tests(found);
    return [
      apart.length ? make("p", { class: "notes" }, "These rows stand on other data, or at another size or seed: their figures do not compare.") : null,
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Rows side by side" }, make("table", { class: "plain side" },
        make("thead", {}, make("tr", {}, make("td", {}), found.map((row) => make("th", { scope: "col" }, veil.link(row), " ", make("span", { class: "told" }, row.variant))))),
        make("tbody", {}, body))),
      tested.length ? make("section", {}, make("h2", {}, "How much they differ"),
        make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Differences" }, make("table", { class: "plain answer" },
          make("thead", {}, make("tr", {}, ["Figure", "Which", "Difference, 95 % interval", "p", "Told apart?"].map((text) => make("th", { scope: "col" }, text)))),
          make("tbody", {}, tested))),
        make("p", { class: "caption" }, "On the same people, key by key. The interval is that of this pair alone; p is corrected for all pairs of rows on these data, so that it may leave open what the interval alone would not."))
        : found.length > 1 && !apart.length ? make("p", { class: "caption" }, "No paired test: reference methods, figures that are not certified, rows of other devices, and data whose records keep no replicates have none.") : null,
    ].filter(Boolean);
  }

  function figure(row, column) {
    const one = row.figures[column.name];
    if (!one || one.value === null) return make("td", {}, make("span", { class: "quiet" }, "no figure"));
    return make("td", {}, make("span", { class: "value" }, veil.number(one.value, column.digits)), " ", make("span", { class: "interval" }, veil.interval(one.low, one.high, column.digits)),
      one.attacked ? make("span", { class: "quiet" }, " by " + veil.by(one)) : null, veil.marks(one).map((mark) => make("span", { class: "mark" }, " " + mark)));
  }

  // How much two rows differ, if a paired test was made.
  function tests(found) {
    const lines = [];
    found.forEach((a, place) => found.slice(place + 1).forEach((b) => {
      Object.entries(a.tests[b.id] || {}).forEach(([metric, apart]) => {
        const column = veil.columns[metric] || { title: metric, better: "higher" };
        const print = (value) => signed(value, apart.ratio, column.digits), ends = print(apart.low) + " to " + print(apart.high);
        const gain = (apart.ratio ? apart.value - 1 : apart.value) * (column.better === "higher" ? 1 : -1);
        const better = apart.p >= 0.05 ? "not told apart" : (gain > 0 ? a : b).plugin + " is better for the data owner";
        lines.push(make("tr", {}, make("th", { scope: "row" }, column.title), make("td", {}, named(a) + (apart.ratio ? " ÷ " : " − ") + named(b)),
          make("td", {}, make("span", { class: "value" }, print(apart.value)), " ", make("span", { class: "interval" }, ends)),
          make("td", {}, apart.p < 0.001 ? "< 0.001" : apart.p.toFixed(3)), make("td", {}, better)));
      });
    }));
    return lines;
  }
  const named = (row) => (row.plugin + " " + row.variant).trim();
  const signed = (value, ratio, digits) => (ratio ? "× " + veil.number(value) : (value < 0 ? "−" : "+") + veil.number(Math.abs(value), digits));
})();
