package console

// A Finding is one line of a doctor. `ocr doctor --json` prints it, and `rehydrate doctor` reads it.
type Finding struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Note  bool   `json:"note,omitempty"` // it could not be checked, and the user has to see to it
	Found string `json:"found"`
	Hint  string `json:"hint,omitempty"` // how to get what is missing
}
