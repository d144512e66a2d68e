"use strict";

// Swagger UI has dark colours, but follows a class instead of the system's setting.
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", prefersDark.matches);
followScheme();
prefersDark.addEventListener("change", followScheme);

window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  layout: "BaseLayout",
  // Off, because it puts a link into the button of each operation, which a screen reader cannot use.
  deepLinking: false,
  tryItOutEnabled: true,
  // A badge that would ask a server elsewhere.
  validatorUrl: null,
});
