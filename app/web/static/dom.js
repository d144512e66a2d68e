// Makes elements without innerHTML: the text of a service or of a user never becomes markup.

export const byId = (id) => document.getElementById(id);
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** make("p.note", {lang: "en"}, "text", child, …); empty children are left out, functions become event listeners. */
export function make(description, attributes = {}, ...children) {
  const [tag, ...classes] = description.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** The checked value of a group of radio buttons; null if none is checked. */
export function chosen(name) {
  return document.querySelector(`input[name="${name}"]:checked`)?.value ?? null;
}

export function choose(name, value) {
  const found = document.querySelector(`input[name="${name}"][value="${value}"]`);
  if (found) found.checked = true;
}
