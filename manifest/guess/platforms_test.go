package guess

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rehydrate/manifest"
)

// TestInitLeavesPlatformsOut: of an export of a platform where people are paid or asked, nothing is taken but ids and
// the answers.
func TestInitLeavesPlatformsOut(t *testing.T) {
	prolific := "Submission id=65a0000000000000000000%02d|Participant id=5f30000000000000000000%02d|Status=APPROVED,RETURNED|" +
		"Custom study tncs accepted at=Not Applicable|Started at=2024-01-01T10:00:%02dZ|Completed at=2024-01-01T10:05:%02dZ|" +
		"Reviewed at=2024-01-02T10:00:00Z|Archived at=2024-01-02T10:05:%02dZ|Time taken=2%02d|Completion code=C1ABCD|Total approvals=1%02d|" +
		"Age=20,33|Sex=Male,Female|Ethnicity simplified=White,Black|Country of birth=Chad,Norway|Country of residence=Norway,Chad|" +
		"Nationality=Chad,Norway|Language=Norwegian,French|Student status=No,Yes|Employment status=Full-Time,Other|"
	for _, test := range []struct {
		name, columns string // each NAME=VALUES, which go round; %02d counts the rows
		want          string
		says          string
	}{
		{"Prolific", prolific + "post_id=1ab%02d|label=sad,glad", "id,label",
			`column "Country of residence" may tell of the people`},
		{"Prolific without the people", strings.Join(strings.Split(prolific, "|")[2:],
			"|") + "post_id=1ab%02d|label=sad,glad", "id,label",
			`column "Status" is one of Prolific's exports`},
		{"a number beside", strings.Join(strings.Split(prolific, "|")[2:],
			"|") + "post_id=1ab%02d|label=sad,glad|slider=0.1%02d", "id,label",
			`column "slider" may tell of the people who answered`},
		{"Mechanical Turk",
			"HITId=3X%02d|HITTypeId=3YT|Title=Label memes|Reward=$0.10|CreationTime=Mon Jan 01|MaxAssignments=3|AssignmentStatus=Approved,Rejected|" +
				"AcceptTime=Mon Jan 0%02d|WorkTimeInSeconds=1%02d|LifetimeApprovalRate=100%% (1/1)|Last30DaysApprovalRate=100%% (1/1),0%% (0/0)|" +
				"Input.post_id=1ab%02d|Answer.label=sad,glad|Answer.gender=f,f|Answer.state=Ohio,Utah|Answer.native_language=English,French|Approve=x,",
			"id,answer_label", `column "AssignmentStatus" is one of Mechanical Turk's exports`},
		{"Toloka",
			"ASSIGNMENT:link=https://x.org/%02d|ASSIGNMENT:status=APPROVED,REJECTED|ASSIGNMENT:started=2024-01-01T10:00:%02d|INPUT:post_id=1ab%02d|OUTPUT:label=sad,glad",
			"id,output_label", `column "ASSIGNMENT:status" is one of Toloka's exports`},
		{"other columns", "status=open,closed|post_id=1ab%02d|label=sad,glad|language=en,de|title_length=10,37",
			"id,status,label,language,title_length", ""},
	} {
		var header []string
		var rows strings.Builder
		for i := range 24 {
			var row []string
			for column := range strings.SplitSeq(test.columns, "|") {
				name, values, _ := strings.Cut(column, "=")
				all := strings.Split(values, ",")
				value := all[i/3%len(all)]
				if strings.Contains(value, "%") {
					value = fmt.Sprintf(value, append([]any{i}, nil)[:strings.Count(value, "%02d")]...)
				}
				if i == 0 {
					header = append(header, name)
				}
				row = append(row, value)
			}
			rows.WriteString(strings.Join(row, ",") + "\n")
		}
		o := Options{Options: manifest.Options{Known: english}}
		if i := slices.IndexFunc(header, func(name string) bool { return strings.HasSuffix(name, "post_id") }); i >= 0 {
			o.ID = header[i]
		}
		d, err := initFiles(t, o, file(t, "a.csv", strings.Join(header, ",")+"\n"+rows.String()))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		said := strings.Join(d.Warnings, "\n")
		if got := strings.Join(d.Example[0], ","); got != test.want || !strings.Contains(said, test.says) ||
			test.says == "" && said != "" {
			t.Errorf("%s: the columns are %s, want %s; it says\n%s", test.name, got, test.want, said)
		}
	}
}
