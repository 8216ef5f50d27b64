"use strict";
const race = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const symbols = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "hexagon"];
const glyphs = ["●", "■", "◆", "▲", "▼", "✚", "★", "⬢"];
const separated = race.bracket[0] > 0;
const floor = race.tol / 10; // smaller gaps would take the room of those that are compared
const state = { axis: "passes", hidden: new Set(), theme: null };

const figures = [
  {
    id: "bracket", title: "Bracket", cost: true, y: separated ? "margin (units of X)" : "upper bound on the margin", log: !separated,
    caption: separated ? "Lower and upper bounds on the largest margin, which is where they meet."
      : "Upper bound on the largest margin. No method found a separator, so the lower bound is 0.",
    lines: (m, cost) => [
      { name: "upper", x: m.columns[cost], y: m.columns.upper },
      { name: "lower", x: m.columns[cost], y: m.columns.lower.map(v => v > 0 ? v : null) },
    ],
  },
  {
    id: "gap", title: "Relative gap", cost: true, y: "(upper − lower)/upper", log: true,
    caption: `Width of the bracket, relative to its upper end. It is 1 until a separator is found; gaps below ${floor.toExponential(0)} are drawn at ${floor.toExponential(0)}.`,
    lines: (m, cost) => [{ name: "gap", x: m.columns[cost], y: m.columns.gap.map(v => v === null ? null : Math.max(v, floor)), told: m.columns.gap }],
    level: { at: race.tol, text: "tol" },
  },
  {
    id: "margin", title: "Normalized margin", y: "margin (units of X)",
    caption: "Margin of each method's own output, round by round; dotted: what its theorem promises.",
    lines: m => [
      { name: "margin", x: m.columns.t, y: m.columns.normalized_margin },
      m.promised_margin && { name: "theorem", x: m.columns.t, y: m.promised_margin, dotted: true },
    ],
  },
  {
    id: "regret", title: "Regrets and bounds", y: "(R<sup>w</sup> + R<sup>p</sup>)/Σα", log: true,
    caption: "Average regret of both players; dotted: the bound of the method's theorem.",
    lines: m => [
      m.average_regret && { name: "regret", x: m.columns.t, y: m.average_regret.map(v => v > 0 ? v : null) },
      m.columns.bound.some(v => v !== null) && { name: "theorem", x: m.columns.t, y: m.columns.bound, dotted: true },
    ],
  },
];

function css(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
function colour(k) { return css(`--c${k % 8}`); }

function traces(figure) {
  return race.methods.flatMap((m, k) => figure.lines(m, state.axis).filter(Boolean).map(line => ({
    type: "scatter", mode: line.dotted ? "lines" : "lines+markers", x: line.x, y: line.y, customdata: line.told || line.y, name: `${m.method}, ${line.name}`,
    visible: !state.hidden.has(k), showlegend: false, meta: k, connectgaps: false,
    line: { color: colour(k), width: line.dotted ? 1.5 : 2, dash: line.dotted ? "dot" : "solid" },
    marker: { color: colour(k), symbol: symbols[k % 8], size: 7, maxdisplayed: 7 },
    hovertemplate: `<b>${m.method}</b><br>${line.name} %{customdata:.4g}<br>${figure.cost ? state.axis : "round"} %{x:.4g}<extra></extra>`,
  })));
}

function marginRange() {
  // the margin is at most γ*, and a promise below zero says nothing: what is far below is not worth the room
  const best = race.bracket[1], low = Math.min(...race.methods.flatMap(m => m.columns.normalized_margin));
  return [Math.max(low, -best) - 0.05 * best, 1.08 * best];
}

function bracketRange() {
  const best = race.bracket[1], seen = race.methods.map(m => m.columns.upper[0]).filter(v => v !== null);
  return [0, Math.min(Math.max(...seen, best), 3 * best) * 1.05];
}

function decades(figure) {
  // one label for each power of ten, fewer where there are many
  const seen = race.methods.flatMap(m => figure.lines(m, state.axis).filter(Boolean).flatMap(line => line.y)).filter(v => v > 0).map(Math.log10);
  return Math.max(1, Math.ceil((Math.max(...seen) - Math.min(...seen)) / 6));
}

function layout(figure) {
  const line = { gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), tickcolor: css("--line"), automargin: true };
  const level = figure.level && { type: "line", xref: "paper", x0: 0, x1: 1, y0: figure.level.at, y1: figure.level.at, line: { color: css("--soft"), width: 1, dash: "dash" } };
  const band = ["bracket", "margin"].includes(figure.id) && separated &&
    { type: "line", xref: "paper", x0: 0, x1: 1, y0: race.bracket[0], y1: race.bracket[0], line: { color: css("--soft"), width: 1, dash: "dash" } };
  const note = (level || band) && {
    xref: "paper", x: 0, xanchor: "left", yref: "y", y: level ? Math.log10(figure.level.at) : race.bracket[0], yanchor: "bottom",
    text: level ? `tol = ${race.tol}` : "γ*", showarrow: false, font: { color: css("--soft"), size: 12 },
  };
  return {
    autosize: true, margin: { l: 56, r: 12, t: 12, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: css("--ink"), family: "system-ui, sans-serif", size: 12 }, hovermode: "closest",
    hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--line"), font: { color: css("--ink") } },
    // a finger that moves over a plot wants to scroll the page
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { ...line, type: "log", title: { text: figure.cost ? state.axis : "rounds" }, exponentformat: "power", dtick: 1 },
    yaxis: {
      ...line, type: figure.log ? "log" : "linear", title: { text: figure.y, standoff: 14 }, exponentformat: figure.log ? "power" : "none",
      ...(figure.log ? { dtick: decades(figure) } : { nticks: 7 }),
      range: !separated ? undefined : figure.id === "margin" ? marginRange() : figure.id === "bracket" ? bracketRange() : undefined,
    },
    shapes: [level, band].filter(Boolean), annotations: [note].filter(Boolean),
  };
}

function draw() {
  for (const figure of figures) {
    Plotly.react(figure.div, traces(figure), layout(figure), { displayModeBar: false, responsive: true });
    const shown = race.methods.filter((_, k) => !state.hidden.has(k)).map(m => m.method);
    figure.div.setAttribute("aria-label", `${figure.title} against ${figure.cost ? state.axis : "rounds"}. ${figure.caption} Shown: ${shown.join(", ") || "no method"}.`);
  }
  document.querySelectorAll("[data-mark]").forEach(mark => {
    mark.textContent = glyphs[mark.dataset.mark % 8] + "\u00a0"; // no line break between the mark and the name
    mark.style.color = colour(mark.dataset.mark);
  });
}

function build() {
  const place = document.getElementById("figures");
  for (const figure of figures) {
    const element = document.createElement("figure");
    element.innerHTML = `<h3 id="title-${figure.id}"></h3><figcaption></figcaption><div class="plot" id="plot-${figure.id}" role="img"></div>`;
    element.querySelector("h3").textContent = figure.title;
    element.querySelector("figcaption").textContent = figure.caption;
    element.setAttribute("aria-labelledby", `title-${figure.id}`);
    figure.div = element.querySelector(".plot");
    place.append(element);
  }
  const chips = document.getElementById("methods");
  race.methods.forEach((m, k) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.dataset.chip = m.method;
    chip.setAttribute("aria-pressed", "true");
    chip.innerHTML = `<span class="mark" data-mark="${k}" aria-hidden="true"></span>`;
    chip.append(m.method);
    chip.addEventListener("click", () => {
      const hide = !state.hidden.has(k);
      hide ? state.hidden.add(k) : state.hidden.delete(k);
      chip.setAttribute("aria-pressed", String(!hide));
      draw();
    });
    chips.append(chip);
  });
  document.getElementById("axis").addEventListener("change", event => { state.axis = event.target.value; draw(); });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const paint = theme => {
    state.theme = theme;
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light colours" : "Dark colours";
    draw();
  };
  button.addEventListener("click", () => paint(state.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", event => paint(event.matches ? "dark" : "light"));
  paint(dark.matches ? "dark" : "light");
}

build();
