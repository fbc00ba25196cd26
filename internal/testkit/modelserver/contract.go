package modelserver

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed testdata/openai.yaml
var specification []byte

// contract is OpenAI's own specification.
var contract = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(specification) })

func operation(path string) (*openapi3.Operation, error) {
	c, err := contract()
	if err != nil {
		return nil, err
	}
	item := c.Paths.Find(strings.TrimPrefix(path, "/v1"))
	if item == nil {
		return nil, fmt.Errorf("the specification has no path %s", path)
	}
	return item.Post, nil
}

// CheckRequest holds the body of a request to a path against OpenAI's specification. It refuses parameters that the
// specification does not name, which the specification itself lets pass.
func CheckRequest(path string, body []byte) error {
	op, err := operation(path)
	if err != nil {
		return err
	}
	schema := op.RequestBody.Value.Content["application/json"].Schema
	if err := check(schema, body); err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	known := properties(schema)
	for name := range fields {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the specification has no parameter %s", name)
		}
	}
	return nil
}

// CheckAnswer holds the body of an answer of status 200 against OpenAI's specification.
func CheckAnswer(path string, body []byte) error {
	op, err := operation(path)
	if err != nil {
		return err
	}
	return check(op.Responses.Status(200).Value.Content["application/json"].Schema, body)
}

func check(schema *openapi3.SchemaRef, body []byte) error {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	// The library's own reader knows every keyword that the specification uses, also "nullable" beside the type "null".
	return schema.Value.VisitJSON(value)
}

// properties are the names that a schema knows, those of the schemas that it is made of included.
func properties(s *openapi3.SchemaRef) []string {
	var names []string
	for name := range s.Value.Properties {
		names = append(names, name)
	}
	for _, part := range s.Value.AllOf {
		names = append(names, properties(part)...)
	}
	return names
}
