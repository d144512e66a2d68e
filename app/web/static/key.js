// Asks for an API key where the service requires one, and repeats what was refused without it.
import { Problem, hasKey, useKey } from "./api.js";
import { byId } from "./dom.js";

const NOT_ACCEPTED = "The service does not accept this key. It may be mistyped, expired or revoked.";
const NO_SCOPE = "This key is valid, but it lacks a scope that this page needs.";
const EMPTY = "Enter a key.";
const FIRST = "Enter a key first.";
const SENDABLE = /^[\x21-\x7e]+$/; // what a header may hold; every key is of such characters

let waiting = null; // one prompt, however many requests wait for it

/** Runs `work`; as long as the service refuses it for want of a key, asks for one and runs it again, unless `signal`
    was aborted meanwhile: then this throws. */
export async function withKey(work, signal) {
  if (document.documentElement.dataset.key === "required" && !hasKey()) await askForKey(waiting ? FIRST : "");
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (problem) {
      if (!(problem instanceof Problem) || ![401, 403].includes(problem.status)) throw problem;
      const message = problem.status === 403 ? NO_SCOPE : NOT_ACCEPTED;
      await askForKey(hasKey() ? message : FIRST);
    }
  }
}

/** With a message the focus goes to the field: someone wants something for which a key is missing. */
function askForKey(message) {
  const form = byId("key-form");
  const input = byId("key");
  form.hidden = false;
  showError(message);
  if (message) input.focus();
  waiting ??= new Promise((resolve) => {
    form.onsubmit = (event) => {
      event.preventDefault();
      const given = input.value.trim();
      if (!SENDABLE.test(given)) {
        showError(given ? NOT_ACCEPTED : EMPTY);
        input.focus();
        return;
      }
      useKey(given);
      input.value = "";
      form.hidden = true;
      waiting = null;
      resolve();
    };
  });
  return waiting;
}

function showError(message) {
  byId("key-error").textContent = message;
  byId("key").setAttribute("aria-invalid", String(message !== ""));
}
