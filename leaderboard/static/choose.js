// Which rows meet what a data owner needs, and why the others do not. The wishes are in the address.
"use strict";

(function () {
  const { make, among, select, state, remember, rows, titles, digits, number } = veil;
  const RISKS = [
    ["guesswork", "Guesses until the first match: at least", -1, 1], ["reid-auc", "ReID AUC: at most", 1, 0.01],
    ["person-risk", "Worst person: found at most so surely", 1, 0.01], ["membership-auc", "Membership AUC: at most", 1, 0.01],
    ["member-risk", "Worst member: told at most so surely", 1, 0.01],
  ];
  const SINGLE = ["person-risk", "member-risk"];
  const CLAIMS = [["", "none needed"], ["finite", "a finite ε that no audit violated"], ["audited", "a finite ε that an audit was held against"]];
  const form = document.getElementById("choose"), answer = document.getElementById("answer");
  const asked = Object.fromEntries(state());

  window.addEventListener("load", () => {
    const sets = Array.from(new Set(rows.map((row) => row.set))).sort((a, b) => (titles[a] || a).localeCompare(titles[b] || b));
    const kinds = Array.from(new Set(rows.map((row) => row.kind))).sort();
    if (!sets.length) { answer.append("No rows yet."); return; }
    const risks = RISKS.filter(([name]) => rows.some((row) => row.figures[name]));
    const presets = Array.from(new Set(rows.map((row) => row.preset))).sort();
    const figures = risks.map(([name]) => name), claims = CLAIMS.map(([name]) => name);
    const bound = (text) => (text && text.trim() !== "" && Number.isFinite(Number(text)) ? text : "");
    const set = among(asked.set, sets) || busiest(sets), told = (name) => rows.some((row) => row.set === set && row.figures[name]);
    const wish = { set, preset: among(asked.preset, presets), utility: bound(asked.utility), figure: among(asked.figure, figures) || figures.find(told) || figures[0] || RISKS[0][0], risk: bound(asked.risk), kind: among(asked.kind, kinds), claim: among(asked.claim, claims), epsilon: bound(asked.epsilon) };
    const change = (name) => (value) => { wish[name] = value; remember(wish); draw(); };
    function field(label, name, step) {
      const input = make("input", { type: "number", step, value: wish[name], inputmode: "decimal" });
      input.addEventListener("input", () => change(name)(input.value));
      return make("label", {}, label + " ", input);
    }
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(
      select("Data most like yours", sets.map((slug) => [slug, titles[slug] || slug]), wish.set, change("set")),
      presets.length > 1 ? select("Preset", [["", "any"], ...presets.map((name) => [name, name])], wish.preset, change("preset")) : "",
      select("What is released", [["", "anything"], ...kinds.map((kind) => [kind, kind])], wish.kind, change("kind")),
      field("Utility at least", "utility", 0.01),
      select("Risk figure", risks.map(([name, text]) => [name, text]), wish.figure, change("figure")),
      field("Its bound", "risk", 0.01),
      select("Formal claim", CLAIMS, wish.claim, change("claim")),
      field("Derived ε at most", "epsilon", 0.1));
    draw();

    function draw() {
      const mine = rowsOf(wish).filter((row) => !row.reference);
      const judged = mine.map((row) => ({ row, ...judge(row, wish) }));
      const fit = judged.filter((one) => !one.against.length).sort((a, b) => a.doubts.length - b.doubts.length || utility(b.row) - utility(a.row));
      const rest = judged.filter((one) => one.against.length).sort((a, b) => a.against.length - b.against.length || utility(b.row) - utility(a.row));
      const sure = fit.filter((one) => !one.doubts.length), likely = fit.filter((one) => one.doubts.length);
      const counted = (some, one, more) => some.length + (some.length === 1 ? one : more);
      const head = (text) => make("h2", {}, text);
      answer.replaceChildren(...(nothing(wish) ? [head("Every row, until you say what you need"), list(fit, () => "nothing was asked of it")] : [
        head(sure.length ? counted(sure, " row qualifies", " rows qualify") : likely.length ? "No row qualifies for sure" : "No row qualifies"),
        sure.length ? list(sure, () => wish.utility !== "" || wish.risk !== "" ? "by the bad end of its intervals, too" : "by its claim and kind, which have no intervals") : "",
        likely.length ? head(counted(likely, " row", " rows") + " by the figure alone, and what is doubtful") : "",
        likely.length ? list(likely, (one) => one.doubts.join("; ")) : "",
        limits(wish),
        fit.length ? "" : make("p", { class: "quiet" }, "Ask for less, or for another kind of release: below stands what keeps each row out.")]),
        rest.length ? make("h2", {}, rest.length + (rest.length === 1 ? " does not" : " do not") + ", and why") : "",
        rest.length ? list(rest, (one) => one.against.join("; ")) : "");
    }
  });

  const rowsOf = (wish) => rows.filter((row) => row.set === wish.set && (!wish.preset || row.preset === wish.preset));

  // What few keys cannot show of single people, of pure noise neither.
  function limits(wish) {
    const some = rowsOf(wish).filter((row) => row.figures[wish.figure] && row.figures[wish.figure][2] !== null);
    const least = Math.min(...some.map((row) => row.figures[wish.figure][2]));
    if (wish.risk === "" || !SINGLE.includes(wish.figure) || !some.length || least <= Number(wish.risk)) return "";
    const noise = some.some((row) => row.reference === "keeps nothing") ? ", that of pure noise neither" : "";
    return make("p", { class: "quiet" }, "No interval of this figure ends below " + number(least, digits[wish.figure]) + " on these data" + noise + ": so few keys do not show less of single people.");
  }

  const busiest = (sets) => sets.reduce((best, slug) => (count(slug) > count(best) ? slug : best));
  const count = (slug) => rows.filter((row) => row.set === slug && !row.reference && Object.keys(row.figures).length).length;
  const useful = (row) => row.figures[row.useful];
  const nothing = (wish) => [wish.kind, wish.utility, wish.risk, wish.claim, wish.epsilon].every((said) => said === "");
  const utility = (row) => (useful(row) ? useful(row)[0] : -1);

  function judge(row, wish) {
    const against = [], doubts = [];
    function compare(name, bound, sign, what) {
      const found = row.figures[name], told = (value) => number(value, digits[name]);
      if (bound === "" || !Number.isFinite(Number(bound))) return;
      if (!found) { against.push("no figure for " + what); return; }
      const limit = Number(bound), bad = sign > 0 ? found[2] : found[1];
      if (sign * (found[0] - limit) > 0) against.push(what + " is " + told(found[0]));
      else if (bad === null || sign * (bad - limit) > 0) doubts.push(what + " is " + told(found[0]) + ", and its interval " + (bad === null ? "is not known" : "reaches to " + told(bad)));
    }
    function attacked(name, bound, sign, what) {
      const found = row.figures[name];
      compare(name, bound, sign, what);
      if (!found) return;
      const beyond = found[5];
      if (beyond !== null && sign * (beyond - Number(bound)) > 0) doubts.push("an attack that is not certified puts " + what + " at " + number(beyond, digits[name]));
      if (found[6]) doubts.push("an attack stopped before it had a figure for " + what);
    }
    if (wish.kind && row.kind !== wish.kind) against.push("it releases " + row.kind);
    compare(row.useful, wish.utility, -1, "utility");
    const [name, text, sign] = RISKS.find(([each]) => each === wish.figure) || RISKS[0];
    if (wish.risk !== "") {
      const what = text.split(":")[0].toLowerCase();
      if (row.unrated) against.push("its privacy figures are not rated: " + row.unrated);
      else if (row.figures[name] && !row.figures[name][4]) against.push("no attack that counts gave its figure for " + what + ": it supports no claim");
      else attacked(name, wish.risk, sign, what);
    }
    if (!nothing(wish) && ["broken", "members told"].includes(row.verdict)) doubts.push("attacks on it say: " + row.verdict);
    const [, derived, shown, per, whole] = row.epsilon || [null, null, null, "", true];
    if (wish.claim || wish.epsilon !== "") {
      if (!row.epsilon) against.push("it makes no formal claim");
      else if (row.claim === "violated") against.push("an audit violated its claim");
      else if (derived === null) against.push("no finite ε holds");
      else if (wish.epsilon !== "" && !whole) against.push("its ε is per " + per + ", not for a whole image");
      else if (wish.epsilon !== "" && derived > Number(wish.epsilon)) against.push("its derived ε is " + number(derived) + " per " + per);
      else if (wish.claim === "audited" && shown === null) against.push("no audit was held against its claim");
    }
    if (!nothing(wish) && !row.vouched) doubts.push("only its author measured it (" + row.tier + ")");
    return { against, doubts };
  }

  function list(some, why) {
    return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Rows" }, make("table", { class: "plain answer" },
      make("thead", {}, make("tr", {}, ["Method", "Preset", "Verdict", "Utility", "Why"].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, some.map((one) => make("tr", {},
        make("th", { scope: "row" }, veil.link(one.row), " ", make("span", { class: "told" }, one.row.told)),
        make("td", {}, one.row.preset + (one.row.seed ? " seed " + one.row.seed : "")),
        make("td", {}, veil.verdict(one.row)),
        make("td", {}, useful(one.row) ? number(useful(one.row)[0], digits[one.row.useful]) : "none"),
        make("td", { class: "why" }, why(one)))))));
  }
})();
