package main

import (
	"io"

	"rehydrate/internal/printable"
	"rehydrate/manifest"
	"rehydrate/pipeline/language"
	"rehydrate/pipeline/ocr/layout"
	"rehydrate/policy"
)

// A decision says whether an image's text is English, by the rule and the threshold that
// rehydrate uses.
type decision struct {
	Decision string          `json:"decision"` // english, not_english, unreadable, no_text
	Reason   manifest.Reason `json:"reason"`   // "" for plain English
	Hit      float64         `json:"hit"`      // share of the tokens in the dictionary
	Tokens   int             `json:"tokens"`
}

type jsonDecision struct {
	File string `json:"file"`
	decision
}

func decide(filter *language.Filter, r layout.Reading) decision {
	// All words, not the accepted ones alone: rehydrate judges by them, too.
	v := filter.Judge(r.Words, policy.Default().Filter.EnglishThreshold)
	d := decision{Decision: string(v.Outcome), Reason: v.Reason, Hit: v.Hit, Tokens: v.Tokens}
	switch {
	case v.Reason == language.ReasonNoText:
		d.Decision = "no_text"
	case v.Outcome == "":
		d.Decision = "english"
	}
	return d
}

// filterOutput prints the decision on each image, as a word before its name or as JSON.
func filterOutput(out io.Writer, filter *language.Filter, asJSON bool) output {
	if asJSON {
		return jsonOutput(out, func(r result) any {
			return jsonDecision{r.name, decide(filter, r.Reading)}
		})
	}
	return textOutput(out, func(r result) string {
		return decide(filter, r.Reading).Decision + "\t" + printable.EscapedLine(r.name) + "\n"
	})
}
