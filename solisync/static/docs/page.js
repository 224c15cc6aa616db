SwaggerUIBundle({
  url: "/api/openapi.json",
  dom_id: "#interface",
  validatorUrl: null, // otherwise the page would send the document to a public validator
});
