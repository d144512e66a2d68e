"use strict";

window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  layout: "BaseLayout",
  deepLinking: true,
  tryItOutEnabled: true,
  // A badge that would ask a server elsewhere.
  validatorUrl: null,
});
