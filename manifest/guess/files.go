package guess

import (
	"strings"
)

// fileForm is the name of a file of a usual kind, with or without a path before it.
var fileForm = pattern(`(?i)[^\s./\\]\.(?:jpe?g|jfif|png|gifv?|webp|bmp|tiff?|svg|avif|hei[cf]|mp4|webm|mov|avi|mkv|mp3|wav|` +
	`csv|tsv|jsonl?|ndjson|xlsx?|ods|txt|md|parquet|feather|pdf|docx?|odt|pptx?|zip|gz|tar|7z|rar|html?|xml|ya?ml|pkl|npy|npz|pt|h5|` +
	`sqlite|db|py|ipynb|bak|log)(?:[?#]\S*)?$`)

// homeForm is a path that names the person whose computer or drive it is on: in a home folder, or in a drive of one's
// own.
var homeForm = pattern(`(?i)(?:[/\\=:"]|^[a-z]:)(?:home|users|documents and settings)[/\\][^/\\]+[/\\]|` +
	`^(?:home|users)[/\\][^/\\]+[/\\]|(?:^|[/\\=])(?:mydrive|my drive|shareddrives|onedrive|dropbox|google drive|icloud)[/\\][^/\\]|` +
	`(?:^|[/\\=])~\pL[^/\\\s]*(?:[/\\]|$)`)

// rootForm is a path from the root of a computer, of a drive of Windows, or of a server of files.
var rootForm = pattern(`(?i)^(?:[a-z]:[\\/]\S|\\\\[^\\\s]|/[^/\s]+/[^/]|~[/\\]|file:/|gs://|s3://)`)

// isFile reports whether a text names a file or folder: by the ending of its name, or as a path from a root.
func isFile(text string) bool {
	return strings.Contains(text, ".") && fileForm().MatchString(text) ||
		strings.ContainsAny(text, `/\`) && !strings.HasPrefix(text, "/r/") && rootForm().MatchString(text)
}

// isHome reports whether a text is a path that names whose it is.
func isHome(text string) bool {
	return strings.ContainsAny(text, `/\~`) && homeForm().MatchString(text)
}
