// Pictures come from the service as SVG. They are parsed as XML and adopted, so the page's style sheet colours them.
import { Problem, request } from "./api.js";
import { make } from "./dom.js";
import { withKey } from "./key.js";
import { save } from "./report.js";

const SVG = "image/svg+xml";
const NARROWEST = 320; // the service draws for 320 to 1200 px
const WIDEST = 1200;

export const widthFor = (box) => Math.min(Math.max(Math.round(box.clientWidth), NARROWEST), WIDEST);

/** What a figure is called, and how to read it on paper, where its picture has no room for its own notes. */
const CAPTIONS = {
  density: ["How sure the score is", "Dark: 95% interval. Grey: 95% of people."],
  reference: ["Reference diameters over age at this body size", "Bands: 68%, 95% of people. Bar: interval."],
  visits: ["Score over age, exploratory", "Bars: 95% intervals. Filled: this study."],
};

/** A figure with one picture and its downloads. `body` is the request that the service drew it from, and
    `signal` is aborted when the user clears it. */
export function figure(name, svg, { site, body, width, signal }) {
  const [caption, notes] = CAPTIONS[name];
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
  return make("figure", { "data-picture": name, "aria-label": caption }, drawn, drawn.querySelector("path") ? make("figcaption.on-paper", {}, notes) : null,
    make("div.downloads", {}, button("SVG", downloadSvg), button("PNG", downloadPng)), error);
}

/** On paper a picture shows its plot alone, so that it is large enough to read: the page prints the rest as text. */
export function printPlots() {
  const pictures = () => document.querySelectorAll("figure > svg[data-plot]");
  addEventListener("beforeprint", () => {
    for (const svg of pictures()) {
      svg.dataset.whole ??= svg.getAttribute("viewBox");
      showPart(svg, svg.dataset.plot);
    }
  });
  addEventListener("afterprint", () => {
    for (const svg of pictures()) showPart(svg, svg.dataset.whole);
  });
}

function showPart(svg, box) {
  const [, , width, height] = box.split(" ");
  for (const [name, value] of Object.entries({ viewBox: box, width, height })) svg.setAttribute(name, value);
}
