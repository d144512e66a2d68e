// Fills the page of a model card: the page itself is open, its content needs `model:read`.
import { Problem, request } from "./api.js";
import { byId } from "./dom.js";
import { withKey } from "./key.js";
import { widthFor } from "./pictures.js";
import { save } from "./report.js";

const [site, version] = location.pathname.split("/").slice(-2);

try {
  const response = await withKey(load);
  show(new DOMParser().parseFromString(await response.text(), "text/html"));
} catch (problem) {
  if (!(problem instanceof Problem)) throw problem;
  showState(`${problem.title}. ${problem.detail}`);
}

/** While the page asks for a key, nothing is loading. */
async function load() {
  const address = `models/${site}/${version}/content?width=${widthFor(byId("state"))}`;
  showState("Loading the card …");
  try {
    return await request(address, { accept: "text/html" });
  } catch (problem) {
    showState("");
    throw problem;
  }
}

function showState(text) {
  byId("state").textContent = text;
}

function show(content) {
  document.title = content.title;
  byId("contents").replaceChildren(...content.querySelector("nav[aria-label=Contents]").children);
  byId("card").replaceChildren(...content.querySelector("main").children);
  byId("card").querySelector(`a[href$="v1/models/${site}/${version}"]`).onclick = downloadJson;
  byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView(); // was not there when the browser looked for it
}

/** A link sends no key, so the script fetches what it leads to. */
async function downloadJson(event) {
  event.preventDefault();
  const link = event.target;
  try {
    const response = await withKey(() => request(`v1/models/${site}/${version}`));
    save(await response.blob(), `normalcy-${site}-${version}.json`);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    link.after(` ${problem.title}.`);
  }
}
