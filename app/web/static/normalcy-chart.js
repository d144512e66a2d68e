/* <normalcy-chart>: a picture of the Normalcy service in any page, without a framework.

   <script type="module" src="https://…/assets/normalcy-chart.js"></script>
   <normalcy-chart site="SoV" sex="male" age-years="55" height-cm="176" weight-kg="84" diameter-mm="41"></normalcy-chart>

   Attributes: site, age-years, sex, height-cm, weight-kg, diameter-mm, measurement-sd-mm, hdi-probability, model-version;
   subject (your own patient reference, stored only as a keyed hash); edge, phase and modality (how it was measured);
   thresholds (numbers, separated by spaces or commas); include-unreliable (present: yes); picture (reference, density or
   visits); theme (light, dark; default: that of the reader); src (address of the service; default: where this script
   came from).
   Properties: key (an API key; never an attribute, so that it does not stand in the document), visits (an array).
   Events: `load` when the picture is there, `error` with the problem in `detail`.

   Every drawing with a diameter is a score, and leaves a record in the audit: the picture is scaled, not fetched again,
   when the page changes its size. */

const NUMBERS = ["age-years", "height-cm", "weight-kg", "diameter-mm", "measurement-sd-mm", "hdi-probability"];
const TEXTS = ["sex", "model-version", "subject"];
const CONVENTION = ["edge", "phase", "modality"];
const PROPERTIES = ["key", "visits"];
const REQUIRED = ["site", "sex", "age-years", "height-cm", "weight-kg"];
const SERVICE = new URL("..", import.meta.url).href;
const [NARROWEST, USUAL, WIDEST] = [320, 640, 1200];

const style = new CSSStyleSheet();
style.replaceSync(`
  :host { display: block; }
  :host([hidden]) { display: none; }
  svg { display: block; max-width: 100%; height: auto; }
  p { margin: 0; font: 0.875rem/1.5 system-ui, sans-serif; }
`);

class NormalcyChart extends HTMLElement {
  static observedAttributes = ["site", "picture", "theme", "src", "thresholds", "include-unreliable", ...NUMBERS, ...TEXTS, ...CONVENTION];

  #key = "";
  #visits = [];
  #isScheduled = false;
  #request = null;

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [style];
  }

  get key() { return this.#key; }
  set key(text) { this.#key = String(text); this.#schedule(); }

  get visits() { return this.#visits; }
  set visits(list) { this.#visits = Array.from(list); this.#schedule(); }

  connectedCallback() {
    PROPERTIES.forEach((name) => this.#upgrade(name));
    this.#schedule();
  }

  /* A page may have set a property before this script was there: that one hides the accessor of the class. */
  #upgrade(name) {
    if (!Object.hasOwn(this, name)) return;
    const value = this[name];
    delete this[name];
    this[name] = value;
  }

  disconnectedCallback() { this.#request?.abort(); }
  attributeChangedCallback() { this.#schedule(); }

  /* Attributes that a page sets one after the other give one request. */
  #schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.isConnected && REQUIRED.every((name) => this.hasAttribute(name))) this.#draw();
    });
  }

  async #draw() {
    this.#request?.abort();
    const request = (this.#request = new AbortController());
    this.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(this.#address(), {
        method: "POST",
        headers: {
          "Accept": "image/svg+xml",
          "Content-Type": "application/json",
          ...(this.#key && { "Authorization": `Bearer ${this.#key}` }),
        },
        body: JSON.stringify(this.#body()),
        credentials: "omit",
        referrerPolicy: "no-referrer",
        signal: request.signal,
      });
      if (!response.ok) throw Object.assign(new Error("refused"), { problem: await readProblem(response) });
      const drawn = new DOMParser().parseFromString(await response.text(), "image/svg+xml").documentElement;
      this.shadowRoot.replaceChildren(drawn);
      this.dispatchEvent(new Event("load"));
    } catch (error) {
      if (request.signal.aborted) return;
      this.#fail(error.problem ?? { title: "The service cannot be reached", errors: [] });
    } finally {
      if (this.#request === request) this.removeAttribute("aria-busy");
    }
  }

  #address() {
    const service = new URL(this.getAttribute("src") ?? SERVICE, document.baseURI);
    const base = service.href.endsWith("/") ? service.href : `${service.href}/`;
    const address = new URL(`v1/sites/${encodeURIComponent(this.getAttribute("site"))}/chart`, base);
    const width = Math.round(this.clientWidth || USUAL);
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    address.searchParams.set("picture", this.getAttribute("picture") ?? "reference");
    address.searchParams.set("theme", this.getAttribute("theme") ?? (isDark ? "dark" : "light"));
    address.searchParams.set("width", Math.min(Math.max(width, NARROWEST), WIDEST));
    return address;
  }

  #body() {
    const body = {};
    for (const name of NUMBERS) if (this.hasAttribute(name)) body[fieldOf(name)] = Number(this.getAttribute(name));
    for (const name of TEXTS) if (this.hasAttribute(name)) body[fieldOf(name)] = this.getAttribute(name);
    const convention = CONVENTION.filter((name) => this.hasAttribute(name));
    if (convention.length) body.convention = Object.fromEntries(convention.map((name) => [name, this.getAttribute(name)]));
    const thresholds = (this.getAttribute("thresholds") ?? "").split(/[\s,]+/).filter(Boolean);
    if (thresholds.length) body.thresholds = thresholds.map(Number);
    if (this.hasAttribute("include-unreliable")) body.include_unreliable = true;
    if (this.#visits.length) body.visits = this.#visits;
    return body;
  }

  #fail(problem) {
    const message = document.createElement("p");
    message.setAttribute("role", "alert");
    message.textContent = [`${problem.title}.`, ...(problem.errors ?? []).map((each) => each.message)].join(" ");
    this.shadowRoot.replaceChildren(message);
    this.dispatchEvent(new CustomEvent("error", { detail: problem }));
  }
}

function fieldOf(name) {
  return name.replaceAll("-", "_");
}

async function readProblem(response) {
  try {
    return await response.json();
  } catch {
    return { title: `The service answered with status ${response.status}`, errors: [] };
  }
}

customElements.define("normalcy-chart", NormalcyChart);
