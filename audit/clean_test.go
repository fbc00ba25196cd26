package audit

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rehydrate/internal/testkit"
	"rehydrate/manifest"
)

// lines writes one line for each number below n.
func lines(format string, n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.Bytes()
}

// checkout makes a small git checkout with a pack and loose objects, and returns its files.
func checkout(t *testing.T, in map[string][]byte) map[string][]byte {
	t.Helper()
	dir, files := t.TempDir(), map[string][]byte{}
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git",
			append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		testkit.Lacking(t, "git", err)
	}
	git("init", "-q")
	for n, suffix := range []string{"", "\nand one line more\n"} {
		for name, body := range in {
			testkit.OK(t, os.WriteFile(filepath.Join(dir, name), append(bytes.Clone(body), suffix...), 0o600))
		}
		testkit.OK(t, os.WriteFile(filepath.Join(dir, "note.txt"),
			lines("a line of a note, number %d"+suffix+"\n", 80), 0o600))
		git("add", ".")
		git("commit", "-q", "-m", "the work so far")
		if n == 0 {
			git("gc", "-q")
		}
	}
	testkit.OK(t, filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			files[filepath.ToSlash(rel)], err = os.ReadFile(name)
		}
		return err
	}))
	return files
}

// icon is a favicon.ico of one picture of 32 pixels, as a bitmap without its header.
func icon() []byte {
	const size = 40 + 32*32*4 + 32*4
	head := append([]byte("\x00\x00\x01\x00\x01\x00\x20\x20\x00\x00\x01\x00\x20\x00"), byte(size&0xff), byte(size>>8),
		0, 0, 22, 0, 0, 0)
	body := make([]byte, size)
	copy(body, "\x28\x00\x00\x00\x20\x00\x00\x00\x40\x00\x00\x00\x01\x00\x20\x00")
	for i := 40; i < size; i++ {
		body[i] = byte(i * i)
	}
	return append(head, body...)
}

// cleanFiles are what lies in the folders of people who have nothing of a removed post.
func cleanFiles(t *testing.T, w *world) map[string]map[string][]byte {
	t.Helper()
	one := func(name, body string) map[string][]byte { return map[string][]byte{name: []byte(body)} }
	small := encodePNG(warp(48, 48, func(x, y int) color.Color { return color.Gray{uint8(x * y)} }))
	hash := func(i int) string { return fmt.Sprintf("%040x", uint64(i+1)*0x9e3779b97f4a7c15) }
	var hashes, sums strings.Builder
	for i := range 500 {
		hashes.WriteString(hash(i)[24:] + hash(i + 7)[16:] + "\n")
		fmt.Fprintf(&sums, "%064x  file-%d.bin\n", uint64(i+3)*0x9e3779b97f4a7c15, i)
	}
	type score struct {
		I     int64   `parquet:"i"`
		Score float64 `parquet:"score"`
	}
	type numbered struct {
		ID    int64   `parquet:"id"`
		Score float64 `parquet:"score"`
	}
	type embedded struct {
		FileName string    `parquet:"file_name"`
		Emb      []float32 `parquet:"emb,list"`
	}
	return map[string]map[string][]byte{
		"README": one("README.md",
			"# Memes\n\nThe weather app promised sun, and we had none of it.\n\nRun `make`.\n"),
		"LICENSE": one("LICENSE",
			"Permission is hereby granted, free of charge, to any person obtaining a copy of this software\n"),
		"git checkout": checkout(t,
			map[string][]byte{"README.md": []byte("# A project\n"), "logo.png": small,
				"main.py": []byte("print('hi')\n")}),
		"training log": {"train.log": lines("2026-01-02 03:04:05 INFO epoch %d loss 0.136748 lr 1e-05\n",
			200)},
		"LaTeX": one("paper.tex",
			"\\section{Results}\nThe kappa is $0.71$ for 1,049 memes. \\cite{liu2019}\n\\begin{tabular}{lr}a & 1\\\\ b & 2\\end{tabular}\n"),
		"BibTeX": one("refs.bib",
			"@article{liu2019,\n  title={A Robustly Optimized Approach},\n  year={2019}, doi={10.1000/182}\n}\n"),
		"notebook": one("a.ipynb",
			`{"cells":[{"cell_type":"code","execution_count":null,"id":"3f2a9c1d","metadata":{},"outputs":[],"source":["import pandas as pd\n","df = pd.read_csv('x.csv')"]}],"metadata":{"kernelspec":{"name":"python3"}},"nbformat":4,"nbformat_minor":5}`),
		"notebook's checkpoint": one(".ipynb_checkpoints/a-checkpoint.ipynb",
			`{"cells":[{"cell_type":"markdown","id":"b7d41e22","metadata":{},"source":["# Notes"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`),
		"metrics":            {"metrics.csv": append([]byte("id,score\n"), lines("%d,0.5\n", 100)...)},
		"metrics by name":    one("scores.csv", "id,name\n1,alice\n2,bob\n3,carol\n"),
		"names as ids":       one("people.csv", "id,age\nalice,31\nbob,32\ncarol,33\nlayer1,4\n"),
		"hexadecimal ids":    one("runs.csv", "id,loss\na1b2c3d,1\nb2c3d4e,2\nc3d4e5f,3\n"),
		"counts":             {"counts.tsv": append([]byte("word\tcount\n"), lines("word%d\t136748\n", 50)...)},
		"a column of counts": {"counts.csv": append([]byte("bin,count\n"), lines("%d,136748\n", 50)...)},
		"Parquet of numbers": {"i.parquet": parquetOf(score{1, .5}, score{2, .25})},
		"Parquet with id":    {"n.parquet": parquetOf(numbered{0, .5}, numbered{1, .5}, numbered{2, .25})},
		"Parquet of file names": {"e.parquet": parquetOf(embedded{live1 + ".jpg", []float32{1, 2}},
			embedded{live2 + ".png", []float32{3, 4}})},
		"500 git hashes":  one("hashes.txt", hashes.String()),
		"SHA256SUMS":      one("SHA256SUMS", sums.String()),
		"favicon":         {"favicon.ico": icon()},
		"a small picture": {"badge.png": small},
		"the release":     releaseFiles(t, w),
		"packed release":  packedRelease(t, w),
		"a photograph": {"me.jpg": withSegment(withSegment(encodeJPEG(drawn(77), 85), 0xe1,
			"Exif\x00\x00II*\x00\x08\x00\x00\x00\x00\x00\x00\x00 taken with a camera"), 0xe2,
			"ICC_PROFILE\x00\x01\x01\x00\x00\x02\x0cappl")},
		"live text": one("live.csv",
			"id,text\n"+live1+","+liveText+" of "+live1+"\n"+live2+","+liveText+" of "+live2+"\n"),
		"live rows":  one("labels.csv", "id,label\n"+live1+",F1\n"+live2+",F2\n"),
		"live names": one("names.csv", "file_name,split\n"+live1+".jpg,train\n"+live2+".png,test\n"),
		"job.sh": one("job.sh",
			"#!/bin/sh\n#SBATCH --time=04:00:00\n#SBATCH --job-name=clip\nsrun python train.py --seed 42\n"),
		"requirements": one("requirements.txt",
			"numpy==1.26.4\npandas==2.2.1\ntorch==2.3.0 --hash=sha256:"+strings.Repeat("0a", 32)+"\n"),
		"package-lock": one("package-lock.json",
			`{"name":"page","lockfileVersion":3,"packages":{"node_modules/a":{"version":"1.0.0","resolved":"https://example.org/a.tgz","integrity":"sha512-`+b64(lines("%04d", 16))+`"}}}`),
		"Go source": one("main.go",
			"package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(0xdeadbeef, \"id\", 1<<20) }\n"),
		"Python source": one("train.py",
			"import torch\nids = [136, 748]\nfor i, x in enumerate(ids):\n    print(i, x)\n"),
		"wandb": {"wandb/run-1/files/wandb-summary.json": []byte(`{"loss":0.1,"_step":136,"_runtime":12.5,"_wandb":{"runtime":12}}`), "wandb/run-1/files/config.yaml": []byte("lr:\n  value: 1.0e-05\nseed:\n  value: 42\n"), "wandb/run-1/logs/debug.log": lines("2026-01-01 00:00:%02d,1 INFO MainThread:136 [wandb_run.py:_config_callback():1371]\n", 60)},
		"Hugging Face config": one("config.json",
			`{"architectures":["CLIPModel"],"hidden_size":768,"id2label":{"0":"F1","1":"F2"},"label2id":{"F1":0,"F2":1},"vocab_size":49408}`),
		"vocabulary": {"vocab.json": []byte(`{"!":0,"the</w>":1,"cat</w>":2,"1a</w>":3}`),
			"merges.txt": []byte("#version: 0.2\ni n\nt h\na n\n")},
		"trainer state": one("trainer_state.json",
			`{"best_metric":0.7,"epoch":3.0,"log_history":[{"epoch":1.0,"loss":0.9,"step":100},{"epoch":2.0,"loss":0.5,"step":200}]}`),
		"predictions":          {"pred.jsonl": lines("{\"index\": %d, \"label\": \"F1\", \"p\": 0.25}\n", 40)},
		"a model's confusions": one("confusion.csv", ",F1,F2\nF1,30,4\nF2,5,60\n"),
		"Makefile":             one("Makefile", "all:\n\tpython train.py\nclean:\n\trm -rf out\n"),
		"yaml": one("environment.yml",
			"name: memes\ndependencies:\n  - python=3.11\n  - pip:\n    - datasets==2.19.0\n"),
		"toml": one("pyproject.toml", "[project]\nname = \"memes\"\nversion = \"0.1.0\"\n"),
		"web page": one("index.html",
			"<!doctype html><title>Results</title><p>Our results are in the table.</p><table><tr><td>F1<td>0.61</table>\n"),
		"style": one("style.css", "body { color: #1f2a44; margin: 0 auto; max-width: 60em }\n"),
		"an SVG": one("plot.svg",
			"<svg xmlns='http://www.w3.org/2000/svg'><path d='M 10 20 L 30.5 40.25 L 136 748'/></svg>\n"),
		"subtitles": one("talk.srt", "1\n00:00:01,000 --> 00:00:02,000\nHello and welcome to the talk\n"),
		"an e-mail": one("mail.eml",
			"From: a@example.org\nSubject: the paper\nMessage-ID: <20260102.136@example.org>\n\nSee you on Monday.\n"),
		"npy of numbers": {"emb.npy": npyOf("<f4", 16, make([]byte, 64))},
		"two arrays of numpy": {"both.npy": slices.Concat(npyOf("<f4", 2, []byte("\x00\x01\x02\x03\x04\x05\x06\x07")),
			npyOf("|S6", 2, []byte(live1+live2)))},
		"agreement": one("agreement.csv", "annotator,item,label\n1,1,F1\n1,2,F2\n2,1,F1\n"),
		"timings": {"timings.csv": append([]byte("step,ms,bytes\n"),
			lines("%[1]d,%[1]d.5,136748\n", 60)...)},
		"a Slurm log": one("slurm-136.out",
			"Submitted batch job 136\nslurmstepd: error: *** JOB 136 ON node07 CANCELLED AT 2026-01-01T00:00:00 ***\n"),
	}
}

// releaseFiles are the files of the release that a world audits.
func releaseFiles(t *testing.T, w *world) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"policy.toml": []byte("format = \"rehydrate-policy/1\"\n\n[reddit]\nrecheck_within = \"48h\"\n")}
	for _, name := range []string{"annotations.csv", "release.toml"} {
		body, err := os.ReadFile(filepath.Join(w.dir, "release", name))
		testkit.OK(t, err)
		files[name] = body
	}
	return files
}

// packedRelease are those files in archives, with a list of tombstones.
func packedRelease(t *testing.T, w *world) map[string][]byte {
	t.Helper()
	in := releaseFiles(t, w)
	tombstones := []byte("id,state,time\n" + goneJPEG + ",removed,2030-01-02T03:04:05Z\n")
	object := fmt.Appendf(nil, "blob %d\x00%s", len(in["annotations.csv"]), in["annotations.csv"])
	return map[string][]byte{"annotations.zip": zipOf("release/annotations.csv", in["annotations.csv"]),
		"annotations.csv.gz": gzipOf(in["annotations.csv"]), "annotations.tar.zst": zstdOf(tarOf("annotations.csv",
			in["annotations.csv"])), "0a1b2c": deflated(object),
		"tombstones.csv.gz": gzipOf(tombstones), "tombstones.tgz": gzipOf(tarOf("release/tombstones.csv", tombstones))}
}

func npyOf(descr string, n int, data []byte) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", descr, n)
	head += strings.Repeat(" ", 63-(len(head)+10)%64) + "\n"
	return append(append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8)),
		append([]byte(head), data...)...)
}

// TestCleanFolders finds nothing in folders that hold nothing, and leaves nothing open there: before a purge, after it,
// and with the release alone.
func TestCleanFolders(t *testing.T) {
	before, after, published := newWorld(t, true, false), newWorld(t, false, false), newWorld(t, false, true)
	folders := cleanFiles(t, after)
	if len(folders) < 40 {
		t.Errorf("only %d folders", len(folders))
	}
	now := after.config.Now()
	alone := published.config
	for _, id := range []manifest.PostID{goneJPEG, gonePNG, goneDigits, goneUnseen} {
		alone.Tombstones = append(alone.Tombstones, manifest.Tombstone{ID: id, State: manifest.StateRemoved, Time: now})
	}
	for name, files := range folders {
		t.Run(name, func(t *testing.T) {
			for state, in := range map[string]*world{"before": before, "after": after, "alone": published} {
				dir := t.TempDir()
				switch name {
				case "the release":
					files = releaseFiles(t, in)
				case "packed release":
					files = packedRelease(t, in)
				}
				for name, body := range files {
					testkit.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700),
						os.WriteFile(filepath.Join(dir, name), body, 0o600))
				}
				r := Report{}
				if state == "alone" {
					alone.Files = []string{dir}
					var err error
					r, err = Audit(t.Context(), alone)
					testkit.OK(t, err)
				} else {
					r = in.audit(t, in.ws, dir)
				}
				for _, f := range r.Findings {
					if strings.HasPrefix(f.Where, dir) {
						t.Errorf("%s: found %+v", state, f)
					}
				}
				// Of two removed posts the release has no digest, so that a photograph might be theirs.
				asks := state == "alone" && name == "a photograph"
				for _, o := range r.Open {
					if strings.HasPrefix(o.Where, dir) && !asks {
						t.Errorf("%s: open %+v", state, o)
					}
				}
				if state != "before" && r.Verdict != map[bool]Verdict{false: Pass, true: Undecided}[asks] {
					t.Errorf("%s: %s", state, r.Verdict)
				}
			}
		})
	}
}

// TestGitHistory finds what a checkout no longer has in its loose objects and packs.
func TestGitHistory(t *testing.T) {
	w := newWorld(t, false, false)
	for name, body := range map[string][]byte{"its image": w.images[goneJPEG],
		"its row": []byte("id,label\n" + goneJPEG + ",F1\n")} {
		files, dir := checkout(t, map[string][]byte{"x": body}), t.TempDir()
		for name, body := range files {
			if strings.HasPrefix(name, ".git/") {
				testkit.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700),
					os.WriteFile(filepath.Join(dir, name), body, 0o600))
			}
		}
		r := w.audit(t, w.ws, dir)
		for _, at := range []string{".git/objects/pack/pack-", ".git/objects/"} {
			if !slices.ContainsFunc(r.Findings,
				func(f Finding) bool { return f.ID == goneJPEG && strings.Contains(f.Where, at) }) {
				t.Errorf("%s is not found in %s: %+v, open %+v", name, at, r.Findings, r.Open)
			}
		}
		if len(r.Open) > 0 {
			t.Errorf("%s: open %+v", name, r.Open)
		}
	}
}
