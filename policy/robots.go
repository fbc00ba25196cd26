package policy

import (
	"strings"

	"rehydrate/manifest"
)

// RobotsTag is the reason of an image whose host says in X-Robots-Tag that it is not for training models.
const RobotsTag manifest.Reason = "robots_tag"

// agent is our name in X-Robots-Tag.
const agent = "rehydrate"

// respectsTag is the default of Host.RespectRobotsTag: Reddit's approval covers what lies on Reddit's own hosts.
func respectsTag(host string) bool {
	for _, own := range []string{"redd.it", "redditmedia.com", "redditstatic.com"} {
		if host == own || strings.HasSuffix(host, "."+own) {
			return false
		}
	}
	return true
}

// TagForbids returns the directive of X-Robots-Tag headers that keeps an image out of a dataset, noai or noimageai;
// "" for none. noindex and the like are about search. What stands behind another agent's name does not count. The
// form is Google's: "noindex, noai" or "agent: noai, otheragent: noindex".
func TagForbids(headers []string) string {
	for _, header := range headers {
		ours := true
		for part := range strings.SplitSeq(header, ",") {
			name, directive, named := strings.Cut(part, ":")
			name = strings.ToLower(strings.TrimSpace(name))
			switch {
			case !named:
				directive = name
			case hasValue[name]:
				continue
			default:
				ours = name == agent || name == "*"
				directive = strings.ToLower(strings.TrimSpace(directive))
			}
			if ours && (directive == "noai" || directive == "noimageai") {
				return directive
			}
		}
	}
	return ""
}

// hasValue are the directives that have a value behind a colon, as an agent has directives.
var hasValue = map[string]bool{"unavailable_after": true, "max-snippet": true, "max-image-preview": true,
	"max-video-preview": true}
