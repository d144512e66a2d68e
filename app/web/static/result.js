// The result of one site, what matters first: verdict, answer in words, figures, pictures, details, advisories.
import { siteName } from "./choices.js";
import { capital, make } from "./dom.js";
import { mm, percent, score } from "./units.js";

const MINUS = "\u2212";
export const signed = (text) => text.replaceAll("-", MINUS);
export const range = (low, high, show) => `${signed(show(low))} to ${signed(show(high))}`;

const OTHERS = "reference people of this age, sex and size";
const HEADLINES = {
  above_2: `Score above 2: wider than almost all ${OTHERS}`,
  below_minus_2: `Score below ${MINUS}2: narrower than almost all ${OTHERS}`,
  within: `Score between ${MINUS}2 and 2, like about 95 in 100 reference people`,
};
const SAME = "people of the same age, sex and size";
const PLAIN_HEADLINES = {
  above_2: `Wider than in almost all ${SAME}`,
  below_minus_2: `Narrower than in almost all ${SAME}`,
  within: `In the range of about 95 in 100 ${SAME}`,
  uncertain: `Near the edge of the range of about 95 in 100 ${SAME}`,
};

/** A sentence of the service with true minus signs ("55-year-old" keeps its hyphens), and units on the line of their
    numbers. */
const prose = (text) => text.replace(/(^|[\s(])-(?=\d)/g, `$1${MINUS}`).replace(/(?<=\d) (?=(?:mm|cm|kg)\b)/g, "\u00a0");

/** What was measured before how sure that is: the reason that decides comes first. */
const FIRST_REASONS = ["outside_training_range", "convention_differs", "edge_of_training_range"];
const byWeight = (first, second) => weight(first) - weight(second);
const weight = ({ code }) => (FIRST_REASONS.includes(code) ? FIRST_REASONS.indexOf(code) : FIRST_REASONS.length);

/** The answer as a fact, neither a grade nor a colour. */
function headline({ score: given, reliability }, wording) {
  const { probability, words: event } = sides(given)[sideToShow(given)];
  const words = wording === "patient"
    ? PLAIN_HEADLINES[given.position]
    : HEADLINES[given.position] ?? `Near the limit: ${percent(probability)} probability that the score ${event}`;
  return reliability.verdict === "not_reliable" ? `Not reliable. ${words}` : words;
}

const sides = ({ exceedance: [above, below] }) => ({
  wide: { name: "Probability above 2", probability: above.probability, words: "exceeds 2" },
  narrow: { name: `Probability below ${MINUS}2`, probability: below.probability_below, words: `is below ${MINUS}2` },
});

/** The side to show: that of 2, which the service is about, unless the score rather lies beyond -2. */
function sideToShow(given) {
  const { wide, narrow } = sides(given);
  return given.position !== "within" && narrow.probability > wide.probability ? "narrow" : "wide";
}

const FOR_CLINICIAN = "figure.for-clinician";

/** `showAnyway` asks for the numbers of a score that was withheld. */
export function siteResult(result, diameter, showAnyway) {
  const { model } = result.provenance;
  return make(
    "article.panel.site",
    { "data-site": result.site, "data-verdict": result.reliability.verdict, "aria-label": capital(siteName(result.site)) },
    make("header", {}, make("h3", {}, `${capital(siteName(result.site))}`),
      make("p.model", {}, make("a", { href: `models/${result.site}/${model.version}` }, `Model ${result.site} ${model.version}`),
        model.cohort === "simulated" ? make("strong.tag", {}, "simulated") : ` (${model.cohort}, n = ${model.cohort_size})`)),
    verdict(result, showAnyway),
    result.score ? answer(result, diameter) : null,
    make("p.sentence.for-patient", {}, prose(result.summary.patient)),
    make("div.pictures", { "aria-busy": "true" }, result.score ? make("div.waiting") : null, make("div.waiting")),
    result.score ? details(result) : null,
    advisories(result),
    make("p.sentence.for-clinician", {}, prose(result.summary.clinician)),
  );
}

function verdict({ reliability, score: given }, showAnyway) {
  if (reliability.verdict === "ok") return null;
  const reasons = make("ul.for-clinician", {}, [...reliability.reasons].sort(byWeight).map(({ message }) => make("li", {}, prose(message))));
  if (reliability.verdict === "caution") {
    return make("div.verdict.caution", {}, make("h4", {}, "Caution: this comparison is less certain than usual"), reasons);
  }
  if (given) {
    return make("div.verdict.not-reliable", {}, make("h4", {}, "Not reliable: shown at your request"), reasons);
  }
  return make("div.verdict.not-reliable", {}, make("h4", {}, "No score: it would not be reliable"), reasons,
    make("button.quiet.small.for-clinician", { type: "button", click: showAnyway }, "Show the numbers anyway"));
}

function answer(result, diameter) {
  const { score: given, reference, score_with_measurement_error: withError } = result;
  const { interval_mm: usual, expected_diameter_mm: expected } = reference;
  const side = sideToShow(given);
  const { name, probability } = sides(given)[side];
  const figureOf = (label, value, unit, more, part = "figure") =>
    make(`div.${part}`, {}, make("dt", {}, label), make("dd", {}, make("span.number", {}, value), unit ? make("span.of", {}, unit) : "", more.map((line) => make("span.more", {}, line))));
  return [
    make("p.headline.for-clinician", {}, headline(result, "clinician")),
    make("p.headline.for-patient", {}, headline(result, "patient")),
    make("dl.figures", {},
      figureOf("Measured", String(diameter), "mm", rank(reference.percentile / 100)),
      figureOf("Expected", mm(expected), "mm", ["95% range", `${range(usual.low, usual.high, mm)} mm`]),
      figureOf("Normalcy score", signed(score(given.expected_ns)), "", ["95% interval", range(given.hdi.low, given.hdi.high, score)], FOR_CLINICIAN),
      figureOf(name, percent(probability), "", [inWords(probability), withError ? `with measurement error: ${percent(sides(withError)[side].probability)}` : ""], FOR_CLINICIAN)),
  ];
}

function rank(share) {
  const side = share < 0.5 ? "narrower" : "wider";
  return [`${side} than ${percent(Math.max(share, 1 - share)).replace(">", "over ")}`, "of reference people"];
}

/** The same limits as those of `position`. */
function inWords(probability) {
  if (probability >= 0.975) return "very likely";
  if (probability <= 0.025) return "very unlikely";
  return probability > 0.5 ? "more likely than not" : "less likely than not";
}

function details({ reference, comparators, reliability, score_with_measurement_error: withError, score: given }) {
  const at = reference.diameter_at_threshold_mm[0];
  const z = (value) => (value === null ? "not applicable" : signed(score(value)));
  const other = sides(given)[sideToShow(given) === "wide" ? "narrow" : "wide"];
  const missing = [...new Set(comparators.not_applicable.map(({ message }) => message))];
  const rows = [
    [`Diameter at a score of ${at.threshold}`, `${mm(at.median)} mm (${range(at.low, at.high, mm)})`],
    ["Classic Z-score, linear regression", z(comparators.linear_z)],
    ["Classic Z-score, Altman", z(comparators.altman_z)],
    withError ? ["95% interval allowing for measurement error", range(withError.hdi.low, withError.hdi.high, score)] : null,
    [other.name, percent(other.probability)],
    ["Spread among reference people (SD)", `${mm(reference.aleatoric_sd_mm)} mm`],
    ["Diameter per height", `${comparators.diameter_per_height_cm_m.toFixed(2)} cm/m`],
    ["Diameter per body surface area", `${comparators.diameter_per_bsa_mm_m2.toFixed(1)} mm/m²`],
    ["Area per height", `${comparators.area_per_height_cm2_m.toFixed(1)} cm²/m`],
    ["Interval width at a score of 2", `${score(reliability.context_hdi_width)} (percentile ${Math.round(reliability.context_hdi_width_percentile)})`],
  ].filter(Boolean);
  return make("dl.details.for-clinician", {}, rows.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
    missing.length ? make("div.wide-row", {}, make("dt", {}, "Why a Z-score is missing"), missing.map((message) => make("dd", {}, message))) : null);
}

function advisories({ advisories: given }) {
  return given.length ? make("ul.advisories.for-clinician", { "aria-label": "To keep in mind" }, given.map(({ message }) => make("li", {}, prose(message)))) : null;
}

/** For screen readers: the whole answer in a breath. */
export function spoken(result, wording) {
  const name = capital(siteName(result.site));
  if (!result.score) return `${name}: no score, it would not be reliable.`;
  if (wording === "patient") return `${name}: ${headline(result, wording)}.${caution(result)}`;
  const side = sides(result.score)[sideToShow(result.score)];
  return `${name}: ${headline(result, wording)}. Score ${signed(score(result.score.expected_ns))}, ${side.name.toLowerCase()} ${percent(side.probability)}.${caution(result)}`;
}

const caution = ({ reliability }) => (reliability.verdict === "caution" ? " Read with caution." : "");
