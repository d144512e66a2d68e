// The form: which fields are shown, what they hold in the units of the service, and which of them an error belongs to.
import { allSites, inKg, inMm, isImperial, servedSites, siteName, usesCm, usesDates, useSites } from "./choices.js";
import { byId, capital, chosen } from "./dom.js";
import { checkOnLeaving, findError, inLabels, numberField, showError, typed } from "./fields.js";
import { ageBetween, cmFromFeet, inUnit, today } from "./units.js";
import { findUnusedVisits, showVisitUnits, showVisitValues, visitFields } from "./visits.js";

const diameterId = (site) => `diameter-${site}`;
const ofSite = (site) => `of the ${siteName(site)}`;

function readAge() {
  if (!usesDates()) return typed("age");
  const [birth, study] = [byId("birth").value, byId("study").value];
  if (study > today()) return NaN;
  return birth && study ? ageBetween(birth, study) : null;
}

const hasTooManyInches = () => isImperial() && typed("height-ft") !== null && typed("height-in") >= 12;

function readHeight() {
  if (!isImperial()) return typed("height");
  const [feet, inches] = [typed("height-ft"), typed("height-in")];
  if (hasTooManyInches()) return NaN;
  return feet === null && inches === null ? null : cmFromFeet(feet, inches);
}

const AGE = { path: "age_years", id: "age", label: "Age", limit: "age_years", read: readAge, required: true };
const HEIGHT = { path: "height_cm", id: "height", label: "Height", limit: "height_cm", read: readHeight, required: true };
const WEIGHT = { path: "weight_kg", id: "weight", label: "Weight", limit: "weight_kg", read: () => inKg(typed("weight")), required: true };
const SD = { path: "measurement_sd_mm", id: "sd", label: "Measurement error", limit: "measurement_sd_mm", read: () => typed("sd") };
HEIGHT.imperial = WEIGHT.imperial = isImperial;
AGE.missing = () => (usesDates() ? `Enter the date of ${byId("birth").value ? "study" : "birth"}.` : null);
AGE.wrong = () => {
  if (!usesDates()) return null;
  return `The date of study must not be ${byId("study").value > today() ? "in the future" : "before the date of birth"}.`;
};
HEIGHT.wrong = () => (hasTooManyInches() ? "Inches must be less than 12 where feet are given." : null);

/** One field per site. What was typed before the service listed its sites stays. */
export function showSites(listed) {
  if (listed) useSites(listed);
  const before = [...byId("diameters").querySelectorAll("input")].map((input) => [input.id, input.value]);
  byId("diameters").replaceChildren(...allSites().map(diameterField));
  for (const [id, value] of before) if (byId(id)) byId(id).value = value;
  showUnits();
}

function diameterField({ site, name, current }) {
  const field = numberField(diameterId(site), capital(name), "mm");
  if (current === null) {
    field.querySelector("input").disabled = true;
    field.querySelector(".hint").textContent = "No model is loaded for this site.";
  }
  return field;
}

function diameterFields() {
  return servedSites().map((site) => {
    const id = diameterId(site);
    return { path: `${site}.diameter_mm`, id, label: `Diameter ${ofSite(site)}`, limit: "diameter_mm", read: () => inMm(typed(id)) };
  });
}

const siteOf = (field) => field.path.split(".")[0];

export const allFields = () => [AGE, HEIGHT, WEIGHT, ...diameterFields(), SD, ...visitFields()];

/** Shows the inputs of the chosen units and what their values mean in those of the service. */
export function showUnits() {
  for (const part of document.querySelectorAll("[data-when]")) {
    const [name, value] = part.dataset.when.split("=");
    part.hidden = chosen(name) !== value;
  }
  byId("weight-unit").textContent = isImperial() ? "lb" : "kg";
  for (const site of servedSites()) byId(`${diameterId(site)}-unit`).textContent = usesCm() ? "cm" : "mm";
  showVisitUnits();
  showConverted();
}

export function showConverted() {
  const hint = (id, value, unit, isConverted) => {
    byId(`${id}-hint`).textContent = isConverted ? inUnit(value, unit) : "";
  };
  const age = readAge();
  byId("age-hint").textContent = usesDates()
    ? Number.isFinite(age) ? `${age} years. The dates stay on this page.` : "The dates stay on this page; only the age is sent."
    : "";
  hint("height", readHeight(), "cm", isImperial());
  hint("weight", WEIGHT.read(), "kg", isImperial());
  for (const field of diameterFields()) hint(field.id, field.read(), "mm", usesCm());
  showVisitValues();
}

export function checkField(id) {
  const field = allFields().find((one) => one.id === id);
  if (field) checkOnLeaving(field, readAge());
  const diameters = diameterFields();
  if (!diameters.some((one) => one.id === id) || field.read() === null) return;
  for (const one of diameters) if (one.read() === null) showError(one.id, ""); // one diameter is enough
}

/** Whether the service says more than this page about a value out of range: which unit it may have been given in. */
function isForService(field) {
  const isConverted = field.imperial?.() || (field.limit === "diameter_mm" && usesCm());
  return !field.isOfVisit && !isConverted && Number.isFinite(field.read());
}

/** What is in the form, and everything that is wrong with it: {person, measurements, errors}. */
export function readForm() {
  const age = readAge();
  const errors = [];
  if (chosen("sex") === null) errors.push({ id: "sex", message: "Choose the sex of the reference group." });
  for (const field of allFields()) {
    const message = findError(field, Number.isNaN(age) ? null : age);
    if (message) errors.push({ id: field.id, message, isForService: isForService(field) });
  }
  const measured = diameterFields().filter((field) => field.read() !== null);
  if (!measured.length && servedSites().length) {
    errors.push({ id: diameterId(servedSites()[0]), message: "Enter at least one diameter." });
  }
  errors.push(...findUnusedVisits(measured.map(siteOf)));
  const person = { age_years: age, sex: chosen("sex"), height_cm: readHeight(), weight_kg: WEIGHT.read() };
  const shared = sharedFields();
  const measurements = measured.map((field) => ({ site: siteOf(field), diameter_mm: field.read(), ...shared }));
  return { person, measurements, errors };
}

/** The error and the convention, which hold for all diameters of the form. */
function sharedFields() {
  const stated = ["edge", "phase", "modality"].filter((id) => byId(id).value).map((id) => [id, byId(id).value]);
  const sd = typed("sd");
  return {
    ...(sd ? { measurement_sd_mm: sd } : {}),
    ...(stated.length ? { convention: Object.fromEntries(stated) } : {}),
  };
}

/** An error of the service ({field, message}) at the field of the form that it concerns. */
export function locateError(error, measurements) {
  const measurement = /^measurements\[(\d+)\]\.(\w+)/.exec(error.field);
  const site = measurement && measurements[measurement[1]]?.site;
  const path = measurement && measurement[2] === "diameter_mm" ? `${site}.diameter_mm` : (measurement?.[2] ?? error.field);
  const field = allFields().find((one) => one.path === path || one.path === error.field);
  const message = inLabels(error.message, path.endsWith(".diameter_mm") ? ofSite(site) : "");
  return { id: field?.id ?? (path === "sex" ? "sex" : null), message };
}

export function resetForm() {
  byId("study").value = today();
  showUnits();
}
