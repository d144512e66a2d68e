// Fields that take a number: reading them, checking them against the limits of the service, and showing what is wrong.
import { byId, capital, make } from "./dom.js";
import { feetAndInches, parseNumber, pounds } from "./units.js";

let limits = []; // of GET /v1/limits; empty until they have arrived, and then only the service checks

export const useLimits = (answer) => {
  limits = answer.limits.filter((limit) => limit.advisory === null);
};

/** The range of a field at an age; the last one that applies is the narrowest. */
function limitOf(name, ageYears) {
  return limits.findLast((limit) => limit.field === name && limit.from_age_years <= (ageYears ?? 0));
}

export const typed = (id) => parseNumber(byId(id).value);

/** What is wrong with a field, as a sentence; empty if nothing is.
    A field is {path, id, label, limit, read, required?, missing?, wrong?, imperial?}. */
export function findError(field, ageYears) {
  const value = field.read();
  if (value === null) return field.required ? field.missing?.() ?? `Enter the ${field.label.toLowerCase()}.` : "";
  if (Number.isNaN(value)) return field.wrong?.() ?? `${field.label} must be a number.`;
  const limit = limitOf(field.limit, ageYears);
  if (!limit || (value >= limit.low && value <= limit.high)) return "";
  return `${field.label} must be ${limit.low} to ${limit.high} ${limit.unit}${inOtherUnits(field, limit)}.`;
}

function inOtherUnits(field, limit) {
  if (!field.imperial?.()) return "";
  const convert = { height_cm: feetAndInches, weight_kg: pounds }[field.limit];
  return convert ? ` (${convert(limit.low)} to ${convert(limit.high)})` : "";
}

const hasError = (id) => byId(`${id}-error`)?.textContent !== "";

/** The id of the field that an input belongs to: the one whose error describes it. */
export const fieldOf = (input) =>
  input.getAttribute?.("aria-describedby")?.split(" ").find((id) => id.endsWith("-error"))?.replace(/-error$/, "");

const edited = new Set(); // the fields that were changed since their errors were listed
export const noteEdit = (input) => edited.add(fieldOf(input));

/** What is wrong with a field that is being left. An error that was listed stays until the field is corrected. */
export function checkOnLeaving(field, ageYears) {
  if (hasError(field.id) && !edited.has(field.id)) return;
  showError(field.id, findError({ ...field, required: field.required && hasError(field.id) }, ageYears));
}

const LABELS = {
  age_years: "age", sex: "sex", height_cm: "height", weight_kg: "weight", diameter_mm: "diameter",
  measurement_sd_mm: "measurement error",
};
const NAME = `(?:\\w+\\[\\d+\\]\\.)?\\b(${Object.keys(LABELS).join("|")})\\b`;
const NAMES = new RegExp(`${NAME}(?: and ${NAME})?`, "g");

/** A sentence of the service with the labels of the form for its names; `of` says whose they are: "of visit 1". */
export function inLabels(message, of = "") {
  return capital(message.replace(NAMES, (_, ...names) =>
    `${names.slice(0, 2).filter(Boolean).map((name) => LABELS[name]).join(" and ")}${of && ` ${of}`}`));
}

/** The inputs that share the error of a field are those that its text describes. */
export function showError(id, message) {
  const text = byId(`${id}-error`);
  if (!text) return;
  text.textContent = message;
  for (const input of document.querySelectorAll(`[aria-describedby~="${id}-error"]`)) {
    if (input.type !== "radio") input.setAttribute("aria-invalid", String(message !== ""));
  }
}

/** The first input of a field that is shown now. */
export function firstInput(id) {
  const inputs = [...document.querySelectorAll(`[aria-describedby~="${id}-error"]`)];
  return inputs.find((input) => input.offsetParent !== null) ?? inputs[0];
}

/** Lists all errors ({id, message}; without an id they concern no field) above the form and moves the focus there. */
export function showErrors(errors, title) {
  const summary = byId("errors");
  const items = errors.map(({ id, message }) => {
    const input = id && firstInput(id);
    if (!input) return make("li", {}, message);
    return make("li", {}, make("a", { href: `#${input.id}`, click: (event) => focusOn(event, input) }, message));
  });
  const count = errors.length === 1 ? "There is 1 problem" : `There are ${errors.length} problems`;
  summary.replaceChildren(make("h2", {}, title ?? count), make("ul", {}, items));
  summary.hidden = false;
  edited.clear();
  for (const { id, message } of errors) if (id) showError(id, message);
  summary.focus();
}

export function clearErrors() {
  byId("errors").hidden = true;
  byId("errors").replaceChildren();
  for (const text of document.querySelectorAll("#calculator .error")) showError(text.id.replace(/-error$/, ""), "");
}

function focusOn(event, input) {
  event.preventDefault(); // the address stays as it is
  input.closest("details")?.setAttribute("open", "");
  input.focus();
}

/** A labelled field for a number, with its unit, hint and error. */
export function numberField(id, label, unit) {
  return make(
    "div.field",
    {},
    make("label", { for: id }, label),
    make(
      "div.entry",
      {},
      make("input", { id, inputmode: "decimal", "aria-describedby": `${id}-hint ${id}-error` }),
      make("span.unit", { id: `${id}-unit` }, unit),
    ),
    make("p.hint", { id: `${id}-hint` }),
    make("p.error", { id: `${id}-error` }),
  );
}
