// Numbers as people type and read them: units, ages from dates, percentages. No page, no service.

const CM_PER_FOOT = 30.48;
const CM_PER_INCH = 2.54;
const KG_PER_POUND = 0.45359237;
const MM_PER_CM = 10;
const ADULT_YEARS = 18;

/** A typed number, with a point or a comma; null if nothing is there, NaN if it is not a number. */
export function parseNumber(text) {
  const plain = text.trim().replace(",", ".");
  if (plain === "") return null;
  return /^[-+]?(\d+\.?\d*|\.\d+)$/.test(plain) ? Number(plain) : NaN;
}

export const round = (value, digits = 1) => Number(value.toFixed(digits));
export const cmFromFeet = (feet, inches) => round((feet ?? 0) * CM_PER_FOOT + (inches ?? 0) * CM_PER_INCH);
export const kgFromPounds = (pounds) => round(pounds * KG_PER_POUND);
export const mmFromCm = (cm) => round(cm * MM_PER_CM);

export function feetAndInches(cm) {
  const inches = Math.round(cm / CM_PER_INCH);
  return `${Math.floor(inches / 12)} ft ${inches % 12} in`;
}
export const pounds = (kg) => `${round(kg / KG_PER_POUND, 0)} lb`;

/** From one calendar date to another (`2026-11-15`): whole years, and the part of the year after the last birthday.
    Adults get one decimal, children two, so that the age that is sent does not give the birthday away. */
export function ageBetween(birth, day) {
  const from = new Date(`${birth}T00:00Z`);
  const to = new Date(`${day}T00:00Z`);
  if (Number.isNaN(from.valueOf()) || Number.isNaN(to.valueOf()) || to < from) return NaN;
  const birthday = (year) => Date.UTC(year, from.getUTCMonth(), from.getUTCDate());
  const last = to.valueOf() >= birthday(to.getUTCFullYear()) ? to.getUTCFullYear() : to.getUTCFullYear() - 1;
  const part = (to - birthday(last)) / (birthday(last + 1) - birthday(last));
  const years = last - from.getUTCFullYear() + part;
  const digits = years < ADULT_YEARS ? 2 : 1;
  return Math.floor(years * 10 ** digits + 1e-9) / 10 ** digits; // like a stated age: never rounded up to the next birthday
}

/** A converted value for a hint; empty if there is none. */
export const inUnit = (value, unit) => (Number.isFinite(value) ? `= ${round(value, 2)} ${unit}` : "");

export function today() {
  const now = new Date();
  return new Date(now - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

/** Never 0% or 100%: no probability here is a certainty. */
export function percent(probability) {
  if (probability < 0.01) return "<1%";
  if (probability > 0.99) return ">99%";
  return `${Math.round(probability * 100)}%`;
}

export const mm = (value) => value.toFixed(1);
export const score = (value) => value.toFixed(2).replace(/^-(0\.00)$/, "$1");
