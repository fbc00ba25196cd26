package jsonscan

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal without its escapes for HTML: < > and & stay.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
