// Two or three rows side by side; which ones is in the address.
"use strict";

(function () {
  const { make, state, remember, rows, titles } = veil;
  const MOST = 3;
  const form = document.getElementById("compare"), answer = document.getElementById("answer");
  const chosen = (state().get("rows") || "").split(",").filter(Boolean).slice(0, MOST);

  const name = (row) => [row.method, row.told, "on", titles[row.set] || row.set, row.preset, row.seed ? "seed " + row.seed : ""].filter(Boolean).join(" ");

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
    const alike = (row) => first && row.set === first.set && row.preset === first.preset && row.seed === first.seed;
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
    const apart = found.filter((row) => row.set !== first.set || row.preset !== first.preset || row.seed !== first.seed);
    const fact = (label, text) => make("tr", {}, make("th", { scope: "row" }, label), found.map((row) => make("td", {}, text(row))));
    const entries = new Map();
    found.forEach((row) => row.entries.forEach((entry) => entries.set(entry.name, entry)));
    const body = [
      fact("Data set", (row) => row.data), fact("Run", (row) => row.preset + ", seed " + row.seed + ", " + row.keys + " keys"),
      fact("Verdict", (row) => veil.verdict(row)), fact("In full", (row) => row.sentence), fact("Releases", (row) => row.kind), fact("Tier", (row) => row.tier),
      fact("Formal claim", (row) => (row.epsilon ? "claimed ε " + bound(row.epsilon[0]) + ", derived " + bound(row.epsilon[1]) + " per " + row.epsilon[3] : "none")),
      fact("Cost", (row) => row.cost || "not said"),
    ];
    let group = "";
    entries.forEach((entry) => {
      if (entry.group !== group) {
        group = entry.group;
        body.push(make("tr", { class: "group" }, make("th", { scope: "colgroup", colspan: found.length + 1 }, group)));
      }
      body.push(make("tr", {}, make("th", { scope: "row" }, entry.title + (entry.better === "higher" ? " ↑" : " ↓")), found.map((row) => figure(row, entry.name)),
        ));
    });
    const tested = tests(found);
    return [
      apart.length ? make("p", { class: "notes" }, "These rows stand on other data, or at another size or seed: their figures do not compare.") : null,
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Rows side by side" }, make("table", { class: "plain side" },
        make("thead", {}, make("tr", {}, make("td", {}), found.map((row) => make("th", { scope: "col" }, veil.link(row), " ", make("span", { class: "told" }, row.told))))),
        make("tbody", {}, body))),
      tested.length ? make("section", {}, make("h2", {}, "How much they differ"),
        make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Differences" }, make("table", { class: "plain answer" },
          make("thead", {}, make("tr", {}, ["Figure", "Which", "Difference, 95 % interval", "p", "Told apart?"].map((text) => make("th", { scope: "col" }, text)))),
          make("tbody", {}, tested))),
        make("p", { class: "caption" }, "On the same people, key by key. The interval is that of this pair alone; p is corrected for all pairs of rows on these data, so that it may leave open what the interval alone would not."))
        : found.length > 1 && !apart.length ? make("p", { class: "caption" }, "No paired test: reference methods, figures that are not certified, rows of other devices, and data whose records keep no replicates have none.") : null,
    ].filter(Boolean);
  }

  const bound = (value) => (value === null ? "∞" : veil.number(value));

  function figure(row, metric) {
    const entry = row.entries.find((each) => each.name === metric);
    if (!entry) return make("td", {}, make("span", { class: "quiet" }, "no figure"));
    return make("td", {}, make("span", { class: "value" }, entry.text), " ", make("span", { class: "interval" }, entry.interval),
      entry.by ? make("span", { class: "quiet" }, " by " + entry.by) : null, entry.marks.map((mark) => make("span", { class: "mark" }, " " + mark)));
  }

  // How much two rows differ, where a paired test was made.
  function tests(found) {
    const said = [];
    found.forEach((a, place) => found.slice(place + 1).forEach((b) => {
      Object.entries(a.tests[b.id] || {}).forEach(([metric, apart]) => {
        const entry = a.entries.find((each) => each.name === metric) || { title: metric, better: "higher" };
        const told = (value) => signed(value, apart.ratio, entry.digits), ends = told(apart.low) + " to " + told(apart.high);
        const gain = (apart.ratio ? apart.value - 1 : apart.value) * (entry.better === "higher" ? 1 : -1);
        const better = apart.p >= 0.05 ? "not told apart" : (gain > 0 ? a : b).method + " is better for the data owner";
        said.push(make("tr", {}, make("th", { scope: "row" }, entry.title), make("td", {}, named(a) + (apart.ratio ? " ÷ " : " − ") + named(b)),
          make("td", {}, make("span", { class: "value" }, told(apart.value)), " ", make("span", { class: "interval" }, ends)),
          make("td", {}, apart.p < 0.001 ? "< 0.001" : apart.p.toFixed(3)), make("td", {}, better)));
      });
    }));
    return said;
  }
  const named = (row) => (row.method + " " + row.told).trim();
  const signed = (value, ratio, digits) => (ratio ? "× " + veil.number(value) : (value < 0 ? "−" : "+") + veil.number(Math.abs(value), digits));
})();
