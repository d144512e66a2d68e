// What the user and the service chose: units, how the age is given, and which sites are served.
import { chosen } from "./dom.js";
import { kgFromPounds, mmFromCm } from "./units.js";

/** Shown until the service has listed its sites. */
const KNOWN_SITES = [
  { site: "SoV", name: "sinus of Valsalva", current: "" },
  { site: "AA", name: "ascending aorta", current: "" },
];
let sites = KNOWN_SITES;

export const isImperial = () => chosen("units") === "imperial";
export const usesDates = () => chosen("age-by") === "dates";
export const usesCm = () => chosen("diameter-unit") === "cm";

export const inMm = (value) => (value === null || !usesCm() ? value : mmFromCm(value));
export const inKg = (value) => (value === null || !isImperial() ? value : kgFromPounds(value));

/** The sites of GET /v1/sites, the known ones first. */
export function useSites(listed) {
  const order = ({ site }) => KNOWN_SITES.findIndex((known) => known.site === site) >>> 0; // unknown: -1 becomes largest
  sites = [...listed].sort((first, second) => order(first) - order(second));
}

export const allSites = () => sites;
export const servedSites = () => sites.filter((site) => site.current !== null).map(({ site }) => site);
export const siteName = (site) => sites.find((known) => known.site === site)?.name ?? site;
