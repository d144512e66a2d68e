// Other visits of the patient: rows of the form, and what they add to the request for a chart.
import { inKg, inMm, isImperial, servedSites, siteName, usesCm, usesDates } from "./choices.js";
import { byId, capital, make } from "./dom.js";
import { inLabels, numberField, typed } from "./fields.js";
import { ageBetween, cmFromFeet, inUnit, today } from "./units.js";

const MOST_VISITS = 9; // with the measurement of the form: 10
let rows = []; // the numbers of the visits that are shown; a number is not used again, so ids stay unique
let last = 0;

export function addVisit() {
  const number = ++last;
  const id = (name) => `visit-${number}-${name}`;
  const remove = make("button.quiet.small", { type: "button", click: () => removeVisit(number) }, "Remove");
  const date = make(
    "div.field.when",
    { id: id("dated") },
    make("label", { for: id("date") }, "Date"),
    make("input", { id: id("date"), type: "date", "aria-describedby": `${id("date")}-hint ${id("age")}-error` }),
    make("p.hint", { id: `${id("date")}-hint` }),
  );
  const age = numberField(id("age"), "Age", "years");
  age.classList.add("when");
  const row = make(
    "li.visit",
    { id: id("row") },
    make("fieldset", {}, make("legend", { id: id("title") }), remove, date, age,
      servedSites().map((site) => numberField(id(site), capital(siteName(site)), "mm")),
      numberField(id("height"), "Height", "cm"), numberField(id("weight"), "Weight", "kg")),
  );
  rows.push(number);
  byId("visit-list").append(row);
  showCount();
  return row;
}

function removeVisit(number) {
  byId(`visit-${number}-row`).remove();
  rows = rows.filter((one) => one !== number);
  showCount();
  byId("add-visit").focus();
  byId("calculator").dispatchEvent(new Event("input"));
}

export function clearVisits() {
  rows = [];
  byId("visit-list").replaceChildren();
  showCount();
}

function showCount() {
  byId("add-visit").hidden = rows.length >= MOST_VISITS;
  rows.forEach((number, index) => {
    byId(`visit-${number}-title`).textContent = `Visit ${index + 1}`;
  });
}

export function showVisitUnits() {
  const [imperial, cm, dates] = [isImperial(), usesCm(), usesDates()];
  for (const number of rows) {
    const part = (name) => byId(`visit-${number}-${name}`);
    part("dated").hidden = !dates;
    part("age").closest(".field").hidden = dates;
    part("height-unit").textContent = imperial ? "in" : "cm";
    part("weight-unit").textContent = imperial ? "lb" : "kg";
    for (const site of servedSites()) part(`${site}-unit`).textContent = cm ? "cm" : "mm";
  }
}

/** What was typed, in the units of the service; for an empty size, which one is taken. */
export function showVisitValues() {
  for (const number of rows) {
    const hint = (name, text) => {
      byId(`visit-${number}-${name}-hint`).textContent = text;
    };
    const size = (value, unit) => (value === null ? "Empty: as above" : isImperial() ? inUnit(value, unit) : "");
    hint("date", usesDates() ? inUnit(ageOf(number), "years") : "");
    hint("height", size(heightOf(number), "cm"));
    hint("weight", size(weightOf(number), "kg"));
    for (const site of servedSites()) hint(site, usesCm() ? inUnit(diameterOf(number, site), "mm") : "");
  }
}

const ageOf = (number) => {
  if (!usesDates()) return typed(`visit-${number}-age`);
  const [birth, date] = [byId("birth").value, byId(`visit-${number}-date`).value];
  if (date > today()) return NaN;
  return birth && date ? ageBetween(birth, date) : null;
};
const heightOf = (number) => {
  const value = typed(`visit-${number}-height`);
  return value === null || !isImperial() ? value : cmFromFeet(0, value);
};
const weightOf = (number) => inKg(typed(`visit-${number}-weight`));
const diameterOf = (number, site) => inMm(typed(`visit-${number}-${site}`));

/** Nothing at a visit whose date is there: what is missing then is the date of birth, further up. */
const missingDate = (number) => (usesDates() && byId(`visit-${number}-date`).value ? "" : null);

function wrongDate(number, of) {
  if (!usesDates()) return null;
  const isFuture = byId(`visit-${number}-date`).value > today();
  return `The date ${of} must not be ${isFuture ? "in the future" : "before the date of birth"}.`;
}

/** Errors for what would not be drawn: a visit without a diameter, or with one of a site that the form leaves empty. */
export function findUnusedVisits(measuredSites) {
  return rows.flatMap((number, index) => {
    const id = (site) => `visit-${number}-${site}`;
    const given = servedSites().filter((site) => diameterOf(number, site) !== null);
    const [first] = measuredSites.length ? measuredSites : servedSites();
    if (!given.length) return [{ id: id(first), message: `Enter a diameter of visit ${index + 1}, or remove the visit.` }];
    return given.filter((site) => !measuredSites.includes(site)).map((site) => ({
      id: id(site),
      message: `Visit ${index + 1} has a diameter of the ${siteName(site)}: enter the one of this study above, too.`,
    }));
  });
}

/** The fields of all rows, as `fields.js` checks them. */
export function visitFields() {
  return rows.flatMap((number, index) => {
    const id = (name) => `visit-${number}-${name}`;
    const of = `of visit ${index + 1}`;
    const field = (name, label, limit, read, more = {}) => ({ path: id(name), id: id(name), label: `${label} ${of}`, limit, read, isOfVisit: true, ...more });
    return [
      field("age", usesDates() ? "Date" : "Age", "age_years", () => ageOf(number), { required: true, missing: () => missingDate(number), wrong: () => wrongDate(number, of) }),
      ...servedSites().map((site) => field(site, "Diameter", "diameter_mm", () => diameterOf(number, site))),
      field("height", "Height", "height_cm", () => heightOf(number), { imperial: isImperial }),
      field("weight", "Weight", "weight_kg", () => weightOf(number), { imperial: isImperial }),
    ];
  });
}

/** The visits of a site as the service takes them, with the rows that they come from: {rows, visits}. */
export function readVisits(site, person) {
  const used = rows.filter((number) => diameterOf(number, site) !== null);
  const visits = used.map((number) => ({
    age_years: ageOf(number),
    height_cm: heightOf(number) ?? person.height_cm,
    weight_kg: weightOf(number) ?? person.weight_kg,
    diameter_mm: diameterOf(number, site),
  }));
  return { rows: used, visits };
}

/** An error of the service (`visits[1].height_cm`) at the field that it concerns; without an id if it is of no visit. */
export function locateVisitError({ field, message }, used, site) {
  const found = /^visits\[(\d+)\]\.(\w+)/.exec(field);
  if (!found) return { message: inLabels(message) };
  const number = used[found[1]];
  const name = { age_years: "age", height_cm: "height", weight_kg: "weight", diameter_mm: site }[found[2]];
  return {
    id: name ? `visit-${number}-${name}` : null,
    message: inLabels(message, `of visit ${rows.indexOf(number) + 1}`),
  };
}
