// What leaves the page by the user's hand: text for a report, files, the clipboard.
import { siteName } from "./choices.js";
import { byId, capital, make } from "./dom.js";
import { mm, score } from "./units.js";

/** Plain text for the report of a study, from the sentences of the service, with the visits that are shown. */
export function reportText(study, visits, wording) {
  const parts = [...study.results.map((result) => siteText(result, wording)), ...visits.map((of) => visitsText(of, wording))];
  const { service, computed_at: at } = study.results[0].provenance;
  const origin = `Normalcy ${service.version}, ${at}, request ${study.request_id}.`;
  return [...parts, origin].join("\n\n");
}

function siteText(result, wording) {
  const { summary, provenance, reference, comparators, advisories } = result;
  const lines = [`${capital(siteName(result.site))} (${result.site})`, summary[wording]];
  if (wording === "clinician") {
    if (reference) lines.push(atThreshold(reference));
    if (comparators?.linear_z != null) lines.push(`Classic Z-score (linear regression): ${score(comparators.linear_z)}.`);
    lines.push(...advisories.map(({ message }) => `Note: ${message}`));
  }
  lines.push(`Model ${result.site} ${provenance.model.version}, cohort ${provenance.model.cohort} (n = ${provenance.model.cohort_size}).`);
  return lines.join("\n");
}

/** Patients get what was measured; how visits compare is exploratory, and for clinicians. */
function visitsText({ site, note, measured }, wording) {
  const name = `${capital(siteName(site))} (${site})`;
  const line = ({ input, score: given }) => `At ${input.age_years} years: ${input.diameter_mm} mm`
    + (wording === "patient" ? "." : given ? `, score ${score(given.expected_ns)} (95% interval ${score(given.hdi.low)} to ${score(given.hdi.high)}).` : ", no score.");
  if (wording === "patient") return [`${name}, all measurements`, ...measured.map(line)].join("\n");
  return [`${name}, all visits, exploratory`, ...measured.map(line), note].join("\n");
}

function atThreshold({ diameter_at_threshold_mm: all }) {
  const { threshold, median, low, high } = all[0];
  return `Diameter at a score of ${threshold}: ${mm(median)} mm (95% interval ${mm(low)} to ${mm(high)} mm).`;
}

/** Copies a text and says so at the button. Where the browser does not allow it, shows the text, selected. */
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
    flash(button, "Copied");
  } catch {
    const box = make("textarea.copy", { readonly: true, rows: 8, "aria-label": "Text to copy" });
    box.value = text;
    box.addEventListener("blur", () => box.remove());
    button.after(box);
    box.focus();
    box.select();
    say("The browser does not allow this page to copy. The text is selected: copy it with the keyboard.");
  }
}

export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** For screen readers. */
export const say = (text) => {
  byId("status").textContent = text;
};

function flash(button, text) {
  button.dataset.label ??= button.textContent;
  button.textContent = text;
  setTimeout(() => {
    button.textContent = button.dataset.label;
  }, 1500);
}
