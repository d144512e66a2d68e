"use strict";

const LIGHT = {
  ink: "#13202c", soft: "#4b5b6b", line: "#d8dfe6", accent: "#0b4f78", post: "#0f6b46", alert: "#a01c2c", panel: "#f4f6f8", tint: "#edf1f5",
};
const DARK = {
  ink: "#e7edf3", soft: "#a9b6c3", line: "#2b3742", accent: "#86c5ee", post: "#6fd6a8", alert: "#ffb1b6", panel: "#161e26", tint: "#202b35",
};

const theme = ({ ink, soft, line, accent, post, alert, panel, tint }) => ({
  colors: {
    primary: { main: accent },
    error: { main: alert },
    text: { primary: ink, secondary: soft },
    border: { dark: line, light: line },
    http: { get: accent, post },
    responses: { success: { color: post }, error: { color: alert } },
  },
  schema: { nestedBackground: panel, linesColor: soft, typeNameColor: soft, typeTitleColor: ink },
  sidebar: { backgroundColor: panel, textColor: ink },
  rightPanel: { backgroundColor: panel, textColor: ink },
  codeBlock: { backgroundColor: tint },
  typography: { code: { color: alert, backgroundColor: tint }, links: { color: accent } },
});

// ReDoc takes its colours when it starts, so a change of the system's setting loads the page again.
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
prefersDark.addEventListener("change", () => location.reload());

// The search runs in a worker made from a blob, which the page's policy does not allow.
const options = { disableSearch: true, hideDownloadButton: true, theme: theme(prefersDark.matches ? DARK : LIGHT) };
Redoc.init("openapi.json", options, document.getElementById("redoc"));
