// Lists the rows that meet a data owner's needs, and the reasons why the others do not. The needs are in the address;
// without any, they are those of the front page, for its first data set. A broken row meets no need.
"use strict";

(function () {
  const { make, among, select, state, remember, rows, titles, digits, number } = veil;
  const RISKS = [
    ["guesswork", "Guesses until the first match: at least", -1, 1], ["reid-auc", "ReID AUC: at most", 1, 0.01],
    ["person-risk", "Worst person: found with probability at most", 1, 0.01], ["membership-auc", "Membership AUC: at most", 1, 0.01],
    ["member-risk", "Worst member: recognised with probability at most", 1, 0.01],
  ];
  // A release without a row for each image stands by its members, as on the front page.
  const INSTEAD = { "reid-auc": "membership-auc" };
  const SINGLE = ["person-risk", "member-risk"];
  const CLAIMS = [["", "none needed"], ["finite", "a finite ε that no audit violated"], ["audited", "a finite ε that was audited"]];
  const form = document.getElementById("choose"), answer = document.getElementById("answer");
  const parameters = Object.fromEntries(state());
  const WISHES = JSON.parse(form.dataset.wishes), WISHED = ["utility", "figure", "risk"];
  const BROKEN = ["broken", "membership leaks"], BOUND = ["no leak above a bound", "no membership leak above a bound", "leaks"];
  let lists = 0;
  const NEAREST = 3, NOWHERE = 1e6;  // the gap of a row without a figure, which is near to nothing

  window.addEventListener("load", () => {
    const sets = Array.from(new Set(rows.map((row) => row.section))).sort((a, b) => (titles[a] || a).localeCompare(titles[b] || b));
    const kinds = Array.from(new Set(rows.map((row) => row.kind))).sort();
    if (!sets.length) { answer.append("No rows yet."); return; }
    const risks = RISKS.filter(([name]) => rows.some((row) => value(row, name)));
    const presets = Array.from(new Set(rows.map((row) => row.preset))).sort();
    const figures = risks.map(([name]) => name), claims = CLAIMS.map(([name]) => name);
    const bound = (text) => (text && text.trim() !== "" && Number.isFinite(Number(text)) ? text : "");
    const set = among(parameters.set, sets) || among(WISHES[0].set, sets) || sets[0], measured = (name) => rows.some((row) => row.section === set && value(row, name));
    const wish = { set, preset: among(parameters.preset, presets), utility: bound(parameters.utility), figure: among(parameters.figure, figures) || figures.find(measured) || figures[0] || RISKS[0][0], risk: bound(parameters.risk), kind: among(parameters.kind, kinds), claim: among(parameters.claim, claims), epsilon: bound(parameters.epsilon) };
    const usual = (slug) => WISHES.find((one) => one.set === slug) || {};
    const fits = (name, value) => (name === "figure" ? figures.includes(value) : value !== undefined);
    let asked = [...WISHED, "kind", "claim", "epsilon"].some((name) => parameters[name] !== undefined);
    function begin() {
      for (const name of WISHED) if (!asked && fits(name, usual(wish.set)[name])) wish[name] = usual(wish.set)[name];
    }
    begin();
    // Until something is asked for, another data set has the usual needs on it.
    const change = (name) => (value) => {
      wish[name] = value;
      if (name === "set" && !asked) {
        begin();
        for (const each of form.querySelectorAll("[data-wish]")) each.value = wish[each.dataset.wish];
      } else if (name !== "preset") asked = true;
      remember(asked ? wish : { set: wish.set, preset: wish.preset });
      draw();
    };
    function field(label, name, step) {
      const input = make("input", { type: "number", step, value: wish[name], inputmode: "decimal", "data-wish": name });
      input.addEventListener("input", () => change(name)(input.value));
      return make("label", {}, label + " ", input);
    }
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(
      select("Data set closest to yours", sets.map((slug) => [slug, titles[slug] || slug]), wish.set, change("set")),
      presets.length > 1 ? select("Preset", [["", "any"], ...presets.map((name) => [name, name])], wish.preset, change("preset")) : "",
      select("What is released", [["", "anything"], ...kinds.map((kind) => [kind, kind])], wish.kind, change("kind")),
      field("Utility at least", "utility", 0.01),
      select("Risk figure", risks.map(([name, text]) => [name, text]), wish.figure, change("figure")),
      field("Its limit", "risk", 0.01),
      select("Formal claim", CLAIMS, wish.claim, change("claim")),
      field("Derived ε at most", "epsilon", 0.1));
    form.querySelectorAll("select")[presets.length > 1 ? 3 : 2].dataset.wish = "figure";
    draw();

    function draw() {
      lists = 0;
      const candidates = rowsOf(wish).filter((row) => !row.reference);
      const results = candidates.map((row) => ({ row, ...judge(row, wish) }));
      const fit = results.filter((result) => !result.against.length).sort((a, b) => a.doubts.length - b.doubts.length || utility(b.row) - utility(a.row));
      const rest = results.filter((result) => result.against.length).sort((a, b) => (a.gap >= NOWHERE) - (b.gap >= NOWHERE) || a.against.length - b.against.length || a.gap - b.gap || utility(b.row) - utility(a.row));
      const sure = fit.filter((result) => !result.doubts.length), likely = fit.filter((result) => result.doubts.length);
      const count = (results, singular, plural) => results.length + (results.length === 1 ? singular : plural);
      const head = (text) => make("h2", {}, text);
      const near = nothing(wish) || sure.length ? [] : rest.splice(0, NEAREST);
      answer.replaceChildren(...(nothing(wish) ? [head("No requirement: every row that is not broken"), list(fit, () => "no requirement")] : [
        head(sure.length ? count(sure, " row qualifies", " rows qualify") : likely.length ? "None qualifies for sure" : "None qualifies"),
        sure.length ? list(sure, () => wish.utility !== "" || wish.risk !== "" ? "the worse end of its intervals also qualifies" : "its claim and kind qualify; they have no intervals") : "",
        likely.length ? head(count(likely, " row qualifies", " rows qualify") + " by the figure alone, with doubts") : "",
        likely.length ? list(likely, (result) => result.doubts.join("; ")) : "",
        limits(wish),
        near.length ? head("What comes nearest, and why it fails") : "",
        near.length ? list(near, (result) => result.against.join("; ")) : "",
        fit.length ? "" : make("p", { class: "quiet" }, "Lower your requirements, or choose another kind of release.")]),
        rest.length ? make("h2", {}, rest.length + (near.length ? " more" : "") + (rest.length === 1 ? " does not" : " do not") + ", and why") : "",
        rest.length ? list(rest, (result) => result.against.join("; ")) : "");
    }
  });

  const rowsOf = (wish) => rows.filter((row) => row.section === wish.set && (!wish.preset || row.preset === wish.preset));

  // A note if so few keys cannot show a risk below the bound, not even for pure noise.
  function limits(wish) {
    const rowsWithInterval = rowsOf(wish).filter((row) => value(row, wish.figure) && row.figures[wish.figure].high !== null);
    const least = Math.min(...rowsWithInterval.map((row) => row.figures[wish.figure].high));
    if (wish.risk === "" || !SINGLE.includes(wish.figure) || !rowsWithInterval.length || least <= Number(wish.risk)) return "";
    const noise = rowsWithInterval.some((row) => row.reference === "keeps nothing") ? ", not even for pure noise" : "";
    return make("p", { class: "quiet" }, "No interval of this figure ends below " + number(least, digits(wish.figure)) + " on these data" + noise + ": more keys are needed to show a lower risk of one person.");
  }

  // Two figures with as many digits as tell them apart.
  function apart(name, one, other) {
    for (let more = digits(name); more !== null && more < 9; more += 1) {
      if (number(one, more) !== number(other, more)) return [number(one, more), number(other, more)];
    }
    return [number(one, digits(name)), number(other, digits(name))];
  }

  const value = (row, name) => row.figures[name] !== undefined && row.figures[name].value !== null;
  const APART = ["a trained model", "samples of a generator"];
  const standing = (row, name) => (!value(row, name) && (APART.includes(row.kind) || row.figures[name]?.status === "not-applicable") && INSTEAD[name] && value(row, INSTEAD[name]) ? INSTEAD[name] : name);
  const useful = (row) => (value(row, row.utility) ? row.figures[row.utility] : null);
  const nothing = (wish) => [wish.kind, wish.utility, wish.risk, wish.claim, wish.epsilon].every((text) => text === "");
  const utility = (row) => (useful(row) ? useful(row).value : -1);

  function judge(row, wish) {
    const against = [], doubts = [];
    let gap = 0;  // how far its figures are from what is asked for, as shares of that
    function compare(name, bound, sign, what) {
      const print = (size) => number(size, digits(name));
      if (bound === "" || !Number.isFinite(Number(bound))) return;
      if (!value(row, name)) { against.push("no figure for " + what); gap += NOWHERE; return; }
      const figure = row.figures[name], limit = Number(bound), bad = sign > 0 ? figure.high : figure.low;
      if (sign * (figure.value - limit) > 0) {
        gap += Math.abs(figure.value - limit) / (Math.abs(limit) || 1);
        const [one, other] = apart(name, figure.value, limit);
        against.push(what + " is " + one + (sign > 0 ? ", above " : ", below ") + other);
      }
      else if (bad === null || sign * (bad - limit) > 0) doubts.push(what + " is " + print(figure.value) + ", and its interval " + (bad === null ? "is not known" : "reaches to " + print(bad)));
    }
    function attacked(name, bound, sign, what) {
      compare(name, bound, sign, what);
      if (!value(row, name)) return;
      const { beyond, gaps } = row.figures[name];
      if (beyond !== null && sign * (beyond - Number(bound)) > 0) doubts.push("an attack that is not certified puts " + what + " at " + number(beyond, digits(name)));
      if (gaps.length) doubts.push("an attack stopped before it had a figure for " + what);
    }
    if (wish.kind && row.kind !== wish.kind) against.push("it releases " + row.kind);
    compare(row.utility, wish.utility, -1, "utility");
    const stands = standing(row, wish.figure);
    const [name, text, sign] = RISKS.find(([metric]) => metric === stands) || RISKS[0];
    if (wish.risk !== "") {
      const title = text.split(":")[0], what = /^\S+ [a-z]/.test(title) ? title.toLowerCase() : title;
      if (row.unrated) against.push("its privacy figures are not rated: " + row.unrated);
      else if (value(row, name) && !row.figures[name].certified) against.push("no certified attack gave its figure for " + what + ": it supports no claim");
      else attacked(name, wish.risk, sign, what);
    }
    if (BROKEN.includes(row.verdict)) {
      gap += 1;
      against.push("its verdict is: " + row.label);
    } else if (wish.risk !== "" && !BOUND.includes(row.verdict)) doubts.push("its verdict is: " + row.label + ", so that nothing bounds what other attacks find");
    else if (wish.risk !== "" && !row.complete) doubts.push("some of its attacks failed, did not converge or lack controls");
    const { derived, audited, per } = row, whole = /image|record/.test(per);
    if (wish.claim || wish.epsilon !== "") {
      if (derived === null) against.push("it makes no formal claim");
      else if (row.claim_kind === "violated") against.push("an audit violated its claim");
      else if (derived === "Infinity") against.push("no finite ε holds");
      else if (wish.epsilon !== "" && !whole) against.push("its ε is per " + per + ", not for a whole image");
      else if (wish.epsilon !== "" && derived > Number(wish.epsilon)) against.push("its derived ε is " + number(derived) + " per " + per);
      else if (wish.claim === "audited" && audited === null) against.push("its claim was not audited");
    }
    if (!nothing(wish) && !row.trusted) doubts.push("only its author measured it (" + row.tier + ")");
    return { against, doubts, gap };
  }

  function list(results, why) {
    lists += 1;
    return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Rows, list " + lists }, make("table", { class: "plain answer" },
      make("thead", {}, make("tr", {}, ["Method", "Preset", "Verdict", "Utility", "Why"].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, results.map((result) => make("tr", {},
        make("th", { scope: "row" }, veil.link(result.row), " ", make("span", { class: "told" }, result.row.variant)),
        make("td", {}, result.row.preset + (result.row.seed ? " seed " + result.row.seed : "")),
        make("td", {}, veil.verdict(result.row)),
        make("td", {}, useful(result.row) ? number(useful(result.row).value, digits(result.row.utility)) : "none"),
        make("td", { class: "why" }, why(result)))))));
  }
})();
