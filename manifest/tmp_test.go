package manifest
import ("testing";"fmt";"time")
func TestTmp(t *testing.T){
 for _,f:=range []string{"/tmp/mt/fs.jsonl","/tmp/mt/bad.csv"}{
 r,err:=Open(f,Options{}); if err!=nil{fmt.Println(err);continue}
 s,err:=r.Check(t.Context()); fmt.Println(s.Entries,s.Posts,s.Splits,err,r.plan)
 }
 for _,f:=range []string{"/tmp/mt/own.csv","/tmp/mt/fs.jsonl"}{
 d,err:=Init(f,Options{}); if err!=nil{fmt.Println(err);continue}
 dir:=t.TempDir()+"/r"
 fmt.Println(d.Write(dir,map[string][]byte{"tombstones.csv":[]byte("id,state,time\n")}))
 fmt.Println(string(d.Settings))
 for _,n:=range d.Notes{fmt.Println("-",n)}
 st:=time.Now()
 r,err:=Open(dir,Options{}); fmt.Println(err)
 _,err=r.Check(t.Context()); fmt.Println(err, time.Since(st))
 }
}
