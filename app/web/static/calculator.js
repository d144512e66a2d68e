// The calculator: wires the form, the service and the result together.
import { Problem, requestJson } from "./api.js";
import { servedSites, siteName } from "./choices.js";
import { byId, chosen, make } from "./dom.js";
import { clearErrors, fieldOf, noteEdit, showErrors, useLimits } from "./fields.js";
import { checkField, locateError, readForm, resetForm, showConverted, showSites, showUnits } from "./form.js";
import { withKey } from "./key.js";
import { figure, printPlots, showParts, widthFor } from "./pictures.js";
import { linkWithPreferences, readPreferences } from "./preferences.js";
import { copy, reportText, save, say } from "./report.js";
import { siteResult, spoken } from "./result.js";
import { addVisit, clearVisits, locateVisitError, readVisits } from "./visits.js";
import { clearVisitsResult, moveForPrint, shownVisits, showVisitsOf } from "./visits_result.js";

const THRESHOLDS = [2, -2];
const PICTURES = ["density", "reference"]; // of each site; those of the visits have a panel of their own
let shown = null; // the study that is on the page
let isPressed = false; // a message that appears between press and release would move the button away from the pointer
let running = new AbortController(); // the calculation at hand; a newer one and Clear abort it

async function calculate(includeUnreliable = false) {
  const { signal } = startAnew();
  clearErrors();
  const { person, measurements, errors } = readForm();
  const body = { ...person, measurements, thresholds: THRESHOLDS, include_unreliable: includeUnreliable };
  try {
    if (errors.some((error) => !error.isForService)) return showErrors(await withHints(errors, body, signal));
    const study = await withKey(() => whileBusy(requestJson("v1/studies/score", { body, signal }), signal), signal);
    showStudy(study, measurements);
    await Promise.all(study.results.map((result, index) => showPictures(result, body, measurements[index], signal)));
  } catch (problem) {
    if (!signal.aborted) showProblem(problem, (error) => locateError(error, measurements));
  }
}

/** The errors of the form, with the words of the service where it says more. A value out of range is refused for
    certain, so nothing is scored. */
async function withHints(errors, body, signal) {
  if (!errors.some((error) => error.isForService)) return errors;
  const given = Object.entries(body).filter(([, value]) => value !== null && !Number.isNaN(value));
  try {
    await whileBusy(requestJson("v1/studies/score", { body: Object.fromEntries(given), signal }), signal);
    return errors;
  } catch (problem) {
    if (signal.aborted || !(problem instanceof Problem)) throw problem;
    const said = problem.errors.map((error) => locateError(error, body.measurements));
    return errors.map((error) => (error.isForService && said.find(({ id }) => id === error.id)) || error);
  }
}

/** Ends the calculation at hand: it shows nothing more, and sends nothing more. */
function startAnew() {
  running.abort();
  byId("calculate").removeAttribute("aria-busy");
  running = new AbortController();
  return running;
}

async function whileBusy(answer, signal) {
  byId("calculate").setAttribute("aria-busy", "true");
  try {
    return await answer;
  } finally {
    if (!signal.aborted) byId("calculate").removeAttribute("aria-busy");
  }
}

function showStudy(study, measurements) {
  shown = study;
  const results = study.results.map((result, index) =>
    siteResult(result, measurements[index].diameter_mm, () => calculate(true)));
  byId("sites").replaceChildren(...results);
  clearVisitsResult();
  byId("who").textContent = describePerson(study.input);
  const { service, computed_at: at } = study.results[0].provenance;
  byId("origin").textContent = `Normalcy ${service.version} · ${at.slice(0, 16).replace("T", " ")} UTC · request ${study.request_id}`;
  byId("stale").hidden = true;
  byId("result").hidden = false;
  showSimulated(study.results.filter(({ provenance }) => provenance.model.cohort === "simulated").map(({ site }) => site));
  byId("result-title").focus({ preventScroll: true });
  byId("result").scrollIntoView({ block: "start" });
  say(study.results.map((result) => spoken(result, chosen("wording"))).join(" "));
}

function describePerson(input) {
  const size = `${input.height_cm} cm, ${input.weight_kg} kg`;
  return `${input.reference_sex === "male" ? "Male" : "Female"}, ${input.age_years} years, ${size} · BSA ${input.bsa_m2.toFixed(2)} m² (${input.bsa_formula}) · BMI ${input.bmi_kg_m2.toFixed(1)} kg/m²`;
}

/** One request for each site: all of its pictures, drawn by the version that gave the score, for the width at hand. */
async function showPictures(result, study, measurement, signal) {
  const { measurements, ...patient } = study;
  const { site, ...own } = measurement;
  const { rows, visits } = readVisits(site, patient);
  const version = { model_version: result.provenance.model.version };
  const body = { ...patient, ...own, ...version, ...(visits.length ? { visits } : {}) };
  const box = document.querySelector(`[data-site="${CSS.escape(site)}"] .pictures`);
  const width = widthFor(box.firstElementChild);
  try {
    const chart = await withKey(() => requestJson(`v1/sites/${site}/chart?width=${width}`, { body, signal }), signal);
    const draw = (name) => figure(name, chart.pictures[name], { site, body, width, signal });
    box.replaceChildren(...PICTURES.filter((name) => chart.pictures[name]).map(draw));
    if (chart.visits) showVisitsOf(chart, draw("visits"));
    showParts();
  } catch (problem) {
    if (signal.aborted) return;
    if (!(problem instanceof Problem)) throw problem;
    box.replaceChildren(make("p.hint", {}, `The pictures could not be drawn. ${problem.title}.`));
    if (problem.errors.length) {
      showProblem(problem, (error) => locateVisitError(error, rows, site));
    }
  } finally {
    box.removeAttribute("aria-busy");
  }
}

function showProblem(problem, locate) {
  if (!(problem instanceof Problem)) throw problem;
  if (problem.errors.length) showErrors(problem.errors.map(locate));
  else showErrors([{ message: problem.detail || problem.title }], problem.title);
}

const simulated = new Set();

function showSimulated(found) {
  for (const site of found) simulated.add(site);
  const banner = byId("simulated");
  const sites = servedSites().filter((site) => simulated.has(site));
  banner.hidden = !sites.length;
  banner.replaceChildren(make("strong", {}, "For evaluation, not for care."),
    ` Trained on simulated people: ${sites.map((site) => `${siteName(site)} (${site})`).join(", ")}.`);
}

async function load() {
  try {
    const [limits, sites, models] = await withKey(() =>
      Promise.all(["v1/limits", "v1/sites", "v1/models"].map((path) => requestJson(path))));
    useLimits(limits);
    showSites(sites.sites);
    const current = models.models.filter(({ status }) => status === "current");
    showSimulated(current.filter(({ cohort }) => cohort === "simulated").map(({ site }) => site));
    const links = current.flatMap(({ site, version }, index) =>
      [index ? ", " : ": ", make("a", { href: `models/${site}/${version}` }, `${site} ${version}`)]);
    byId("cards").replaceChildren(...links);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    showErrors([{ message: problem.detail || problem.title }], problem.title);
  }
}

function listen() {
  const form = byId("calculator");
  const on = (id, action) => byId(id).addEventListener("click", action);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    calculate();
  });
  form.addEventListener("input", ({ target }) => {
    noteEdit(target);
    showConverted();
    byId("stale").hidden = shown === null;
  });
  form.addEventListener("change", ({ target }) => {
    if (target.type === "radio") showUnits();
  });
  form.addEventListener("focusout", ({ target }) => {
    const id = fieldOf(target);
    if (!id || target.type === "radio") return;
    const check = () => checkField(id);
    if (isPressed) addEventListener("pointerup", () => setTimeout(check), { once: true });
    else check();
  });
  addEventListener("pointerdown", () => (isPressed = true), true);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (isPressed = false), true);
  form.addEventListener("reset", () => {
    startAnew(); // at once: nothing is sent after Clear
    setTimeout(clearPage); // when the fields are empty
  });
  on("add-visit", () => {
    const row = addVisit();
    showUnits();
    [...row.querySelectorAll("input")].find((input) => input.offsetParent !== null).focus();
  });
  on("copy", ({ target }) => copy(reportText(shown, shownVisits(), chosen("wording")), target));
  on("print", () => print());
  on("json", () => save(new Blob([JSON.stringify(forFile(), null, 2)], { type: "application/json" }), "normalcy.json"));
  on("copy-link", ({ target }) => copy(linkWithPreferences(), target));
  for (const input of document.querySelectorAll("input[name=wording]")) input.addEventListener("change", showWording);
}

function clearPage() {
  say("");
  clearErrors();
  clearVisits();
  resetForm();
  readPreferences();
  showUnits();
  byId("result").hidden = true;
  byId("sites").replaceChildren();
  clearVisitsResult();
  shown = null;
}

/** The answer of the service, and the visits beside it, which other answers held. */
function forFile() {
  const visits = shownVisits();
  return visits.length ? { ...shown, exploratory_visits: visits } : shown;
}

function showWording() {
  byId("result").dataset.wording = chosen("wording");
  showParts();
}

readPreferences();
showSites();
resetForm();
showWording();
listen();
printPlots();
moveForPrint();
await load();
