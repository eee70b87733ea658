package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// describe gives the OpenAPI description of all routes. Its schemas follow from the Go types of the answers.
func (a *API) describe() []byte {
	s := &schemas{all: object{}}
	paths := object{}
	failure := s.of(reflect.TypeFor[problem]())
	answers := func(is string, content object) object {
		fails := func(is string) object {
			return object{"description": is, "content": object{"application/json": object{"schema": failure}}}
		}
		return object{
			"200": object{"description": is, "content": content}, "304": object{"description": "Nothing has changed since the ETag."},
			"400": fails("A parameter is wrong."), "401": fails("The credential is refused."), "403": fails("The person may not see that."),
			"404": fails("There is none."), "503": fails("The journal does not answer, or there are too many questions."),
		}
	}
	for _, r := range routes {
		var params []object
		for _, name := range inPath.FindAllStringSubmatch(r.path, -1) {
			params = append(params, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		for _, p := range r.params {
			params = append(params, object{"name": p.name, "in": "query", "description": p.is, "schema": p.schema()})
		}
		content := object{"application/json": object{"schema": s.of(reflect.TypeOf(r.gives))}}
		get := object{"summary": r.is, "operationId": strings.Trim(strings.NewReplacer("/", "_", "{", "", "}", "").Replace(r.path), "_"), "responses": answers("The answer.", content)}
		if params != nil {
			get["parameters"] = params
		}
		paths[Root+r.path] = object{"get": get}
	}
	s.of(reflect.TypeFor[Live]())
	paths[Root+"/live"] = object{"get": object{"summary": "Server-sent events: one named round, with Live as its data, for each new state.", "operationId": "live",
		"responses": answers("A stream that does not end.", object{"text/event-stream": object{"schema": object{"type": "string"}}})}}
	paths[Root+"/openapi.json"] = object{"get": object{"summary": "This description.", "operationId": "openapi", "responses": answers("OpenAPI.", object{"application/json": object{"schema": object{"type": "object"}}})}}
	text, err := json.Marshal(object{
		"openapi": "3.0.3",
		"info": object{"title": "fairlease", "version": or(a.Version, "unknown"), "license": object{"name": "Apache-2.0"},
			"description": "What fairlease does on a Slurm cluster. Only reading. People see the jobs of their tenants and the sums of all tenants; operators see everything."},
		"paths":      paths,
		"components": object{"schemas": s.all},
	})
	if err != nil {
		panic(err) // our own types
	}
	return text
}

type object map[string]any

var inPath = regexp.MustCompile(`\{(\w+)\}`)

func (p *param) schema() object {
	switch p.kind {
	case when:
		return object{"type": "string", "format": "date-time"}
	case span:
		return object{"type": "string"}
	case number:
		if p.name == "limit" {
			return object{"type": "integer", "minimum": 1, "maximum": 1000, "default": defaultLimit}
		}
	case text:
		if p.one != nil {
			return object{"type": "string", "enum": p.one}
		}
	}
	return object{"type": string(p.kind)}
}

// schemas are the schemas of types with a name.
type schemas struct{ all object }

// of gives the schema of a type.
func (s *schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[cluster.Size]():
		return object{"oneOf": []object{{"type": "integer", "minimum": 0}, s.named(t)}} // whole GPUs, or parts
	case t == reflect.TypeFor[cluster.GPUCount]():
		return object{"type": "number"} // half a GPU is 0.5
	case t.Kind() == reflect.Pointer:
		return nullable(s.of(t.Elem()))
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice, reflect.Array:
		return nullable(object{"type": "array", "items": s.of(t.Elem())})
	case reflect.Map:
		return nullable(object{"type": "object", "additionalProperties": s.of(t.Elem())})
	case reflect.Struct:
		return s.named(t)
	}
	return object{}
}

// nullable lets a schema be null, too. A reference has to stand inside allOf for that.
func nullable(schema object) object {
	if _, ok := schema["$ref"]; ok {
		return object{"nullable": true, "allOf": []object{schema}}
	}
	out := object{"nullable": true}
	for k, v := range schema {
		out[k] = v
	}
	return out
}

// named puts the schema of a struct among those with a name, and refers to it.
func (s *schemas) named(t reflect.Type) object {
	name := t.Name()
	if pkg := t.PkgPath(); !strings.HasSuffix(pkg, "/api") && pkg != "" {
		name = pkg[strings.LastIndex(pkg, "/")+1:] + "." + name
	}
	if name == "problem" {
		name = "Error"
	}
	if _, ok := s.all[name]; !ok {
		properties, required := object{}, []string{}
		out := object{"type": "object", "properties": properties}
		s.all[name] = out // before its fields: types may contain themselves
		s.fields(t, properties, &required)
		if len(required) > 0 {
			out["required"] = required
		}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// fields adds the fields of a struct, and of those that it embeds.
func (s *schemas) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			s.fields(of, properties, required)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		properties[tag] = s.of(f.Type)
		if f.Type == reflect.TypeFor[cluster.Rho]() || f.Type == reflect.TypeFor[cluster.Span]() && strings.Contains(tag, "behind") {
			properties[tag] = nullable(s.of(f.Type)) // see view.Unstate
		}
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, tag)
		}
	}
}
