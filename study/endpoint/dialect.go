package endpoint

import (
	"fmt"
	"slices"
	"strings"
)

// A Dialect is the kind of server that is asked. It only chooses defaults: every server is sent the request that
// OpenAI documents.
type Dialect string

// The dialects that are known.
const (
	OpenAI   Dialect = "openai"
	VLLM     Dialect = "vllm"
	Ollama   Dialect = "ollama"
	LlamaCpp Dialect = "llama.cpp"
)

// Dialects are those that are known, for help and completion.
var Dialects = []Dialect{OpenAI, VLLM, Ollama, LlamaCpp}

// ParseDialect reads the name of a dialect.
func ParseDialect(name string) (Dialect, error) {
	if i := slices.Index(Dialects, Dialect(name)); i >= 0 {
		return Dialects[i], nil
	}
	return "", fmt.Errorf("%q is not a kind of server; write openai, vllm, ollama or llama.cpp", name)
}

// Parameters are those that a request can leave out, in the order in which it holds them.
var Parameters = []string{"temperature", "top_p", "max_tokens", "stop", "seed", "response_format"}

// Omits are the parameters that a dialect leaves out where the user names none.
func (d Dialect) Omits() []string {
	if d == OpenAI {
		// Its GPT-5 and o models answer 400 to a temperature other than 1, and to any stop.
		return []string{"temperature", "top_p", "stop"}
	}
	return nil
}

// ParseOmit reads a list of parameters with commas between them; an empty one leaves nothing out.
func ParseOmit(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if !slices.Contains(Parameters, names[i]) {
			return nil, fmt.Errorf("no parameter is called %q: write some of %s", names[i], strings.Join(Parameters, ", "))
		}
	}
	return names, nil
}
