"use strict";
// Shows the OpenAPI document of this server. Text reaches the page only through textContent.

const SHALLOW = 4; // levels of nested objects that are spelled out

function make(name, properties, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

function resolve(spec, node) {
  let found = node;
  while (found && found.$ref) {
    found = found.$ref.slice(2).split("/").reduce((at, key) => at[key], spec);
  }
  return found ?? {};
}

function nameOf(spec, schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((part) => nameOf(spec, part)).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `${nameOf(spec, schema.items) || "any"}[]`;
  if (schema.type === "object" && schema.additionalProperties) {
    return `{name: ${nameOf(spec, schema.additionalProperties) || "any"}}`;
  }
  return [schema.type ?? "any", schema.format].filter(Boolean).join(" ");
}

function bounds(schema) {
  const parts = (schema.anyOf ?? [schema]).filter((part) => part.type !== "null");
  const words = [];
  for (const part of parts) {
    if (part.minimum !== undefined) words.push(`≥ ${part.minimum}`);
    if (part.maximum !== undefined) words.push(`≤ ${part.maximum}`);
    if (part.minItems !== undefined) words.push(`at least ${part.minItems}`);
    if (part.maxItems !== undefined) words.push(`at most ${part.maxItems}`);
  }
  return words.join(", ");
}

function inner(spec, schema) {
  for (const part of schema.anyOf ?? [schema]) {
    const found = resolve(spec, part.type === "array" ? part.items : part);
    if (found.properties && Object.keys(found.properties).length) return found;
    const values = found.additionalProperties;
    if (values && typeof values === "object") {
      const item = resolve(spec, values);
      if (item.properties) return item;
    }
  }
  return null;
}

function fields(spec, schema, depth) {
  const object = inner(spec, schema);
  if (!object) return make("p", {}, make("code", { textContent: nameOf(spec, schema) }));
  const required = new Set(object.required ?? []);
  const body = make("tbody", {});
  const nested = [];
  for (const [name, field] of Object.entries(object.properties)) {
    const word = required.has(name) ? "required" : "";
    const notes = [field.description, bounds(field), word].filter(Boolean).join("; ");
    body.append(make("tr", {},
      make("td", {}, make("code", { textContent: name })),
      make("td", {}, make("code", { textContent: nameOf(spec, field) })),
      make("td", { textContent: notes })));
    if (depth < SHALLOW && inner(spec, field)) nested.push([name, field]);
  }
  const parts = [make("table", {}, body)];
  for (const [name, field] of nested) {
    const box = make("details", {}, make("summary", { textContent: `${name}: ${nameOf(spec, field)}` }));
    // Filled when it is opened: a job inside a batch inside a clone would be a long page.
    box.addEventListener("toggle", () => {
      if (box.open && box.childElementCount === 1) box.append(fields(spec, field, depth + 1));
    });
    parts.push(box);
  }
  return make("div", { className: "inside" }, ...parts);
}

function example(path, method, operation) {
  const lines = [`curl -s -X ${method} "$CORVO_URL${path}"`];
  if (operation.requestBody) {
    const kind = Object.keys(operation.requestBody.content)[0];
    lines.push(`  -H 'content-type: ${kind}'`, "  -d '{…}'");
  }
  return make("pre", { textContent: lines.join(" \\\n") });
}

function contentOf(node) {
  const [kind, value] = Object.entries(node.content ?? {})[0] ?? [];
  return { kind, schema: value?.schema };
}

function open(spec, box, path, method, operation) {
  box.append(make("div", { className: "inside" }, example(path, method, operation)));
  for (const parameter of operation.parameters ?? []) {
    const found = resolve(spec, parameter);
    box.append(make("div", { className: "inside" },
      make("code", { textContent: found.name }),
      ` in ${found.in}: ${nameOf(spec, found.schema)}. ${found.description ?? ""}`));
  }
  if (operation.requestBody) {
    const { kind, schema } = contentOf(operation.requestBody);
    box.append(make("details", { open: true }, make("summary", { textContent: `body: ${kind}` }),
      fields(spec, schema, 0)));
  }
  for (const [status, answer] of Object.entries(operation.responses)) {
    const found = resolve(spec, answer);
    const { kind, schema } = contentOf(found);
    const box2 = make("details", {}, make("summary", { textContent: `${status} ${kind ?? ""}` }),
      make("pre", { textContent: found.description }));
    if (schema && Number(status) < 300) box2.append(fields(spec, schema, 0));
    box.append(box2);
  }
}

function show(spec) {
  document.getElementById("title").textContent = `${spec.info.title} ${spec.info.version}`;
  document.getElementById("introduction").textContent = spec.info.description;
  const main = document.getElementById("operations");
  const nav = document.getElementById("tags");
  const boxes = [];
  for (const { name } of spec.tags) {
    const section = make("section", { id: name }, make("h2", { textContent: name }));
    nav.append(make("a", { href: `#${name}`, textContent: name }));
    for (const [path, methods] of Object.entries(spec.paths)) {
      for (const [verb, operation] of Object.entries(methods)) {
        if (!operation.tags.includes(name)) continue;
        const method = verb.toUpperCase();
        const box = make("details", { id: operation.operationId }, make("summary", {},
          make("span", { className: `method ${method}`, textContent: method }),
          make("code", { textContent: path }),
          make("span", { className: "about", textContent: operation.summary })));
        box.addEventListener("toggle", () => {
          if (box.open && box.childElementCount === 1) open(spec, box, path, method, operation);
        });
        const refusals = Object.values(operation.responses).map((answer) => answer.$ref ?? "");
        boxes.push([box, [method, path, operation.summary, ...refusals].join(" ").toLowerCase()]);
        section.append(box);
      }
    }
    main.append(section);
  }
  document.getElementById("filter").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [box, text] of boxes) box.hidden = !words.every((word) => text.includes(word));
  });
}

fetch("/openapi.json")
  .then((answer) => answer.json())
  .then(show)
  .catch((error) => {
    document.getElementById("introduction").textContent = `The description did not load: ${error}`;
  });
