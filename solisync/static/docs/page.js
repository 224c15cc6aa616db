SwaggerUIBundle({
  url: "/api/openapi.json",
  dom_id: "#interface",
  validatorUrl: null, // else it would ask a public service for its opinion
});
