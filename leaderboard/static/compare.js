// Two or three rows side by side; the address names them.
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

  // After the first choice, comparable rows come first: those of the same data, size and seed.
  function pick() {
    const first = rows.find((row) => row.id === chosen[0]);
    const alike = (row) => first && row.section === first.section && row.preset === first.preset && row.seed === first.seed;
    form.replaceChildren(...Array.from({ length: MOST }, (_, place) => {
      const group = (label, members) => (members.length ? make("optgroup", { label }, members.map((row) => make("option", { value: row.id, selected: row.id === chosen[place] }, name(row)))) : null);
      const list = make("select", {}, make("option", { value: "" }, place < 2 ? "choose a row" : "a third row (optional)"),
        place && first ? [group("On the same data, at the same size", rows.filter(alike)), group("On other data, or at another size", rows.filter((row) => !alike(row)))] : group("Rows", rows));
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
    const loaded = new Array(ids.length);
    let pending = ids.length;
    ids.forEach((id, place) => (rows.some((row) => row.id === id) ? veil.load : (_, callback) => callback(null))(id, (row) => {
      loaded[place] = row;
      pending -= 1;
      if (!pending) answer.replaceChildren(...comparison(loaded.filter(Boolean)), loaded.includes(null) ? make("p", { class: "notes" }, "There is no row of the name " + ids[loaded.indexOf(null)] + ".") : "");
    }));
  }

  function comparison(rows) {
    if (!rows.length) return [];
    const first = rows[0];
    const different = rows.filter((row) => row.section !== first.section || row.preset !== first.preset || row.seed !== first.seed);
    const fact = (label, text) => make("tr", {}, make("th", { scope: "row" }, label), rows.map((row) => make("td", {}, text(row))));
    const facts = veil.fields.filter((field) => field.places.includes("facts"));
    const body = facts.map((field) => fact(field.heading, (row) => (field.name === "verdict" ? veil.verdict(row) : field.name === "dataset" ? row.data : field.name.endsWith("_rank") ? veil.rank(row, field.name) : veil.text(row[field.name]))));
    const known = new Map(rows.flatMap(veil.shown).map(({ column }) => [column.name, column]));
    let group = "";
    Array.from(known.values()).sort((a, b) => a.order - b.order).forEach((column) => {
      if (column.group !== group) {
        group = column.group;
        body.push(make("tr", { class: "group" }, make("th", { scope: "colgroup", colspan: rows.length + 1 }, group)));
      }
      body.push(make("tr", {}, make("th", { scope: "row" }, veil.heading(column)), rows.map((row) => figure(row, column))));
    });
    const lines = tests(rows);
    return [
      different.length ? make("p", { class: "notes" }, "These rows differ in data, size or seed: their figures cannot be compared.") : null,
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Rows side by side" }, make("table", { class: "plain side" },
        make("thead", {}, make("tr", {}, make("td", {}), rows.map((row) => make("th", { scope: "col" }, veil.link(row), " ", make("span", { class: "told" }, row.variant))))),
        make("tbody", {}, body))),
      lines.length ? make("section", {}, make("h2", {}, "Differences"),
        make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Differences" }, make("table", { class: "plain answer" },
          make("thead", {}, make("tr", {}, ["Figure", "Pair", "Difference, 95 % interval", "p", "Significant?"].map((text) => make("th", { scope: "col" }, text)))),
          make("tbody", {}, lines))),
        make("p", { class: "caption" }, "On the same people, key by key. The interval is of this pair alone. The p-value is corrected for all pairs of rows on these data, so a difference may be not significant although its interval excludes zero."))
        : rows.length > 1 && !different.length ? make("p", { class: "caption" }, "No paired test: reference methods, figures that are not certified, rows of other devices, and data whose records keep no replicates have none.") : null,
    ].filter(Boolean);
  }

  function figure(row, column) {
    const one = row.figures[column.name];
    if (!one || one.value === null) return make("td", {}, make("span", { class: "quiet" }, "no figure"));
    return make("td", {}, make("span", { class: "value" }, veil.number(one.value, column.digits)), " ", make("span", { class: "interval" }, veil.interval(one.low, one.high, column.digits)),
      one.attacked ? make("span", { class: "quiet" }, " by " + veil.by(one)) : null, veil.marks(one).map((mark) => make("span", { class: "mark" }, " " + mark)));
  }

  // The differences of two rows that have a paired test.
  function tests(rows) {
    const lines = [];
    rows.forEach((a, place) => rows.slice(place + 1).forEach((b) => {
      Object.entries(a.tests[b.id] || {}).forEach(([metric, test]) => {
        const column = veil.columns[metric] || { title: metric, better: "higher" };
        const print = (value) => signed(value, test.ratio, column.digits), ends = print(test.low) + " to " + print(test.high);
        const gain = (test.ratio ? test.value - 1 : test.value) * (column.better === "higher" ? 1 : -1);
        const better = test.p >= 0.05 ? "not significant" : String(column.group).includes("says nothing of privacy") ? "significant; says nothing of privacy" : (gain > 0 ? a : b).plugin + " is better for the data owner";
        lines.push(make("tr", {}, make("th", { scope: "row" }, column.title), make("td", {}, named(a) + (test.ratio ? " ÷ " : " − ") + named(b)),
          make("td", {}, make("span", { class: "value" }, print(test.value)), " ", make("span", { class: "interval" }, ends)),
          make("td", {}, test.p < 0.001 ? "< 0.001" : test.p.toFixed(3)), make("td", {}, better)));
      });
    }));
    return lines;
  }
  const named = (row) => (row.plugin + " " + row.variant).trim();
  const signed = (value, ratio, digits) => (ratio ? "× " + veil.number(value) : (value < 0 ? "−" : "+") + veil.number(Math.abs(value), digits));
})();
