"use strict";

// The search runs in a worker made from a blob, which the page's policy does not allow.
Redoc.init("openapi.json", { disableSearch: true, hideDownloadButton: true }, document.getElementById("redoc"));
