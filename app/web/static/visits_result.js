// The visits of all sites in one panel: a picture of each site, and one table that joins them by age.
import { servedSites, siteName } from "./choices.js";
import { byId, capital, make } from "./dom.js";
import { range, signed } from "./result.js";
import { score } from "./units.js";

let visits = {}; // by site: {figure, measured, note}

export function clearVisitsResult() {
  visits = {};
  show();
}

/** Adds what the service answered for a site; `figure` is the picture of its visits. */
export function showVisitsOf(chart, figure) {
  const own = { input: chart.input, score: chart.measurement.score };
  visits[chart.site] = { figure, measured: [...chart.visits.items, own], note: chart.visits.note };
  show();
}

/** What is shown of each site, for text and files: {site, note, measured}, in the order of age. */
export const shownVisits = () => servedSites().filter((site) => visits[site]).map((site) => {
  const { note, measured } = visits[site];
  return { site, note, measured: [...measured].sort((first, second) => first.input.age_years - second.input.age_years) };
});

/** On paper the picture of the visits stands beside the others of its site: the row has room for three. */
export function moveForPrint() {
  addEventListener("beforeprint", () => {
    for (const [site, { figure }] of Object.entries(visits)) {
      document.querySelector(`[data-site="${CSS.escape(site)}"] .pictures`).append(figure);
    }
  });
  addEventListener("afterprint", show);
}

function show() {
  const sites = servedSites().filter((site) => visits[site]);
  byId("visits-result").hidden = !sites.length;
  byId("visits-note").textContent = sites.length ? visits[sites[0]].note : "";
  byId("visits-pictures").replaceChildren(...sites.map((site) => visits[site].figure), ...(sites.length ? [joined(sites)] : []));
}

function joined(sites) {
  const ages = new Set(sites.flatMap((site) => visits[site].measured.map(({ input }) => input.age_years)));
  const rows = [...ages].sort((first, second) => first - second).map((age) =>
    make("tr", {}, make("th", { scope: "row" }, String(age)), sites.flatMap((site) => cells(site, age))));
  const heads = sites.flatMap((site) => [
    make("th", { scope: "col" }, `${capital(siteName(site))}, mm`),
    make("th", { scope: "col" }, make("span.sr-only", {}, `${capital(siteName(site))}: `), "Score (95% interval)"),
  ]);
  return make("div.wide", { tabindex: "0", role: "region", "aria-label": "Table of the visits" }, make("table", {},
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Age"), heads)), make("tbody", {}, rows)));
}

function cells(site, age) {
  const found = visits[site].measured.filter(({ input }) => input.age_years === age);
  const lines = (texts) => make("td", {}, texts.map((text) => make("div", {}, text)));
  return [
    lines(found.map(({ input }) => String(input.diameter_mm))),
    lines(found.map(({ score: given }) =>
      given ? `${signed(score(given.expected_ns))} (${range(given.hdi.low, given.hdi.high, score)})` : "no score")),
  ];
}
