package manifest

import "reflect"

// A Task is what a category's labels are predicted as: some put together, some left out.
type Task struct {
	Category string
	Merge    [][]string // codes that count as one label
	LeaveOut []string   // codes that are not scored
	// By names a multi-label category. An ordinal task's errors are told by its labels as well; "" for none.
	By string
}

// Tasks gives the tasks of the FigSIM paper (section 5) for its schema: figurative phenomenon,
// severity with attempts and death put together, related content without the third-person
// description. Under every other schema each category is a task, with all its labels.
func (s Schema) Tasks() []Task {
	if reflect.DeepEqual(s.Categories, FigSIM().Categories) {
		return []Task{
			{Category: "figurative"},
			{Category: "severity", Merge: [][]string{{"SS4", "SS5"}}, By: "figurative"},
			{Category: "related_content", LeaveOut: []string{"SR5"}},
		}
	}
	var tasks []Task
	for _, c := range s.Categories {
		tasks = append(tasks, Task{Category: c.Name})
	}
	return tasks
}
