// Requests to the service. The key is a variable of this module: nothing stores it, a reload forgets it.

const ROOT = new URL("..", import.meta.url); // this file is ROOT/assets/api.js, behind any prefix
let key = "";

export const hasKey = () => key !== "";
export const useKey = (text) => {
  key = text;
};

/** An error response (problem+json), or no response at all: status 0. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.title);
    this.status = status;
    this.title = body.title;
    this.detail = body.detail ?? "";
    this.errors = body.errors ?? [];
  }
}

const UNREACHABLE = {
  title: "The service cannot be reached",
  detail: "Nothing was calculated. Check the connection, then try again.",
};

/** `signal`: of an AbortController whose owner no longer wants the answer; then this throws what `fetch` throws. */
export async function request(path, { body, accept = "application/json", signal } = {}) {
  const headers = { Accept: accept };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  const options = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store", signal };
  let response;
  try {
    response = await fetch(new URL(path, ROOT), options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, UNREACHABLE);
  }
  if (response.ok) return response;
  throw new Problem(response.status, await describe(response));
}

export const requestJson = async (path, options) => (await request(path, options)).json();

async function describe(response) {
  try {
    return await response.json();
  } catch {
    return { title: "The service gave no usable answer", detail: `Status ${response.status}.` }; // from a proxy
  }
}
