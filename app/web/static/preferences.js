// Preferences travel in the fragment of the address (`#units=imperial&wording=patient`), which browsers do not send.
import { choose, chosen } from "./dom.js";

const NAMES = ["units", "diameter-unit", "age-by", "wording"];

export function readPreferences() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of NAMES) if (given.has(name)) choose(name, CSS.escape(given.get(name)));
}

/** The address of this page with the units and the wording, and nothing about a patient. */
export function linkWithPreferences() {
  const link = new URL(location.href);
  link.search = "";
  link.hash = new URLSearchParams(NAMES.map((name) => [name, chosen(name)])).toString();
  return link.href;
}
