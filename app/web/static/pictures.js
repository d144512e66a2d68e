// Pictures come from the service as SVG. They are parsed as XML and adopted, so the page's style sheet colours them.
import { Problem, request } from "./api.js";
import { chosen, make } from "./dom.js";
import { withKey } from "./key.js";
import { save } from "./report.js";

const SVG = "image/svg+xml";
const NARROWEST = 320; // the service draws for 320 to 1200 px
const WIDEST = 1200;

export const widthFor = (box) => Math.min(Math.max(Math.round(box.clientWidth), NARROWEST), WIDEST);

/** What a figure is called, how to read it on paper, where its picture has no room for its own notes, and how to say it
    to a patient; what has no plain words is not shown to patients. */
const CAPTIONS = {
  density: ["How sure the score is", "Dark: 95% interval. Grey: 95% of people."],
  reference: ["Reference diameters over age at this body size", "Bands: 68%, 95% of people. Bar: interval.",
    "The dot is this measurement. The line is what is expected at each age for people of the same sex and size; the light band holds about 95 in 100 of them."],
  visits: ["Score over age, exploratory", "Bars: 95% intervals. Filled: this study.",
    "How far each measurement lies from what is expected at that age: 0 is as expected, and about 95 in 100 people lie between \u22122 and 2."],
};

/** A figure with one picture and its downloads. `body` is the request that the service drew it from, and
    `signal` is aborted when the user clears it. */
export function figure(name, svg, { site, body, width, signal }) {
  const [caption, notes, plain] = CAPTIONS[name];
  const drawn = document.adoptNode(new DOMParser().parseFromString(svg, SVG).documentElement);
  const file = `normalcy-${site}-${name}`;
  const error = make("p.error", { role: "alert" });
  const downloadSvg = () => save(new Blob([svg], { type: SVG }), `${file}.svg`);
  const downloadPng = async () => {
    const address = `v1/sites/${site}/chart?picture=${name}&width=${width}&scale=2`;
    error.textContent = "";
    try {
      const response = await withKey(() => request(address, { body, accept: "image/png", signal }), signal);
      save(await response.blob(), `${file}.png`);
    } catch (problem) {
      if (signal.aborted) return;
      if (!(problem instanceof Problem)) throw problem;
      error.textContent = `The picture was not downloaded. ${problem.title}.`;
    }
  };
  const button = (label, click) =>
    make("button.link", { type: "button", click, "aria-label": `${label}: download the picture “${caption}”` }, label);
  const captions = drawn.querySelector("path") // without one it is a frame that says why nothing is drawn
    ? make("figcaption", {}, make("span.on-paper.for-clinician", {}, notes), plain ? make("span.for-patient", {}, plain) : null)
    : null;
  return make(plain ? "figure" : "figure.for-clinician", { "data-picture": name, "aria-label": caption }, drawn, captions,
    make("div.downloads", {}, button("SVG", downloadSvg), button("PNG", downloadPng)), error);
}

/** On paper and for patients a picture shows its plot alone, so that it is large enough to read and without the terms of
    the method: the page says the rest as text. */
export function showParts(isPrinted = false) {
  const isForPatient = chosen("wording") === "patient";
  for (const svg of document.querySelectorAll("figure > svg[data-plot]")) {
    svg.dataset.whole ??= svg.getAttribute("viewBox");
    svg.setAttribute("aria-hidden", String(isForPatient)); // its description is for clinicians; the caption is plain
    showPart(svg, isPrinted || isForPatient ? svg.dataset.plot : svg.dataset.whole);
  }
}

export function printPlots() {
  addEventListener("beforeprint", () => showParts(true));
  addEventListener("afterprint", () => showParts());
}

function showPart(svg, box) {
  const [, , width, height] = box.split(" ");
  for (const [name, value] of Object.entries({ viewBox: box, width, height })) svg.setAttribute(name, value);
}
