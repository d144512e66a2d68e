"use strict";

// Swagger UI and ReDoc leave some things out that a screen reader or a keyboard needs. They draw again whenever something
// is opened, so this looks at everything that they add.
const MISSING = [
  ["h3.opblock-tag, .models > h4", { "aria-level": "2" }],
  [".opblock h4, #redoc h5", { "aria-level": "3" }],
  [".opblock h5", { "aria-level": "4" }],
  [".microlight", { tabindex: "0" }],
  ["textarea", { "aria-label": "Body of the request" }],
  ["#servers", { "aria-label": "Server" }],
  ["select.content-type", { "aria-label": "Media type" }],
  ["select.examples-select-element, select.dropdown-select", { "aria-label": "Example" }],
  ["select:not([aria-label])", { "aria-label": "Value" }],
];

function complete() {
  for (const [elements, attributes] of MISSING) {
    for (const element of document.querySelectorAll(elements)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (element.getAttribute(name) !== value) element.setAttribute(name, value);
      }
    }
  }
}

let isDue = false; // once for everything that is drawn together

function completeSoon() {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    complete();
  });
}

new MutationObserver(completeSoon).observe(document.querySelector("main"), { childList: true, subtree: true });
complete();
