// A client with the types that openapi-typescript generates: one score, and one request that is rejected.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });
const measurement: components["schemas"]["ScoreRequest"] = {
  age_years: 55,
  sex: "male",
  height_cm: 176,
  weight_kg: 84,
  diameter_mm: 41,
};

const scored = await client.POST("/v1/sites/{site}/score", {
  params: { path: { site: "SoV" }, header: { "X-Request-ID": "generated-typescript" } },
  body: measurement,
});
if (scored.data === undefined) throw new Error("no score");
const expected: number | undefined = scored.data.score?.expected_ns;
console.log(scored.response.status, scored.data.request_id, scored.data.site, Number.isFinite(expected));

const rejected = await client.POST("/v1/sites/{site}/score", {
  params: { path: { site: "SoV" } },
  body: { ...measurement, diameter_mm: 4.1 },
});
if (rejected.error === undefined) throw new Error("not rejected");
console.log(rejected.response.status, (rejected.error.errors ?? []).map((error) => error.code).join());
