(function(){
"use strict";
var root=document.documentElement,id=function(name){return document.getElementById(name)},all=function(what){return [].slice.call(document.querySelectorAll(what))};
root.classList.add("js");
id("theme").onclick=function(){
 var dark=root.dataset.theme?root.dataset.theme==="dark":matchMedia("(prefers-color-scheme:dark)").matches;
 root.dataset.theme=dark?"light":"dark";
};
var data=JSON.parse(id("rows").textContent),words=data.w,order="frhmox";
var rows=data.r.map(function(row,at){
 var name=(row[1]===null?"":"layers."+row[1]+".")+data.p[row[0]];
 return {name:name,at:at,state:row[2],figures:[at,0,order.indexOf(row[2]),row[3],row[4],row[5]],findings:row[6]||[],find:(name+" "+(row[6]||[]).join(" ")).toLowerCase()};
});
var sort={key:0,way:1},shown=0,first=20,on={},body=id("boundaries").tBodies[0];
function number(value,percent){
 if(value===null)return "–";
 if(!value)return percent?"0 %":"0";
 if(percent){value*=100;if(value>=100)return "100 %";if(value<.01)return "< 0.01 %";if(value>99.95)return Math.min(+value.toFixed(2),99.99).toFixed(2)+" %";return value.toPrecision(value<10?2:3)+" %";}
 if(value>=.001&&value<1e3)return value.toPrecision(3);
 if(value>=1e3&&value<1e6)return value.toFixed(0);
 return value.toExponential(2).replace("e+","e");
}
function make(name,kind,text){var made=document.createElement(name);if(kind)made.className=kind;if(text!==undefined)made.textContent=text;return made}
function icon(state){return document.querySelector('.chip[data-s="'+state+'"] svg').cloneNode(true)}
function line(row){
 var tr=make("tr"),head=make("th"),code=make("code"),cut=/^(layers\.\d+\.)(.*)$/.exec(row.name);
 head.scope="row";code.translate=false;
 if(cut){code.append(cut[1],make("wbr"),cut[2])}else code.append(row.name);
 head.append(code);
 var state=make("td","state");state.append(icon(row.state),words[row.state]);
 var found=make("td");
 row.findings.forEach(function(name,at){var link=make("a","",name);link.href="#"+(data.a[name]||name);if(at)found.append(" ");found.append(link)});
 tr.append(head,state,make("td","num opt2",number(row.figures[3],true)),make("td","num opt",number(row.figures[4])),make("td","num",number(row.figures[5])),found);
 return tr;
}
function said(pattern,values){return pattern.replace(/\{(\w)\}/g,function(_,name){return values[name].toLocaleString("en-US")})}
function draw(){
 var wanted=id("q").value.trim().toLowerCase().split(/\s+/).filter(Boolean),some=Object.keys(on).some(function(state){return on[state]});
 var list=rows.filter(function(row){return(!some||on[row.state])&&wanted.every(function(part){return row.find.indexOf(part)>=0})});
 list.sort(function(one,other){
  var a=one.figures[sort.key],b=other.figures[sort.key];
  if(one.state==="o"!==(other.state==="o")&&sort.key)return one.state==="o"?1:-1;
  if(a===null||b===null)return(a===null)-(b===null)||one.at-other.at;
  return(a-b)*sort.way||one.at-other.at;
 });
 var part=document.createDocumentFragment(),many=Math.min(shown,list.length);
 list.slice(0,many).forEach(function(row){part.append(line(row))});
 body.replaceChildren(part);
 id("count").textContent=said(list.length<rows.length?words.found:words.all,{m:many,k:list.length,n:rows.length});
 id("none").hidden=!!list.length;id("more").hidden=shown>=list.length;
}
function again(){shown=50;draw()}
function keep(){
 var states=Object.keys(on).filter(function(state){return on[state]}).join(""),asked=id("q").value;
 history.replaceState(null,"",asked||states?"#table?q="+encodeURIComponent(asked)+(states?"&s="+states:""):"#table");
}
function press(){all(".chip").forEach(function(chip){chip.setAttribute("aria-pressed",!!on[chip.dataset.s])})}
function read(){
 if(location.hash.indexOf("#table?"))return;
 var asked=new URLSearchParams(location.hash.slice(7));
 id("q").value=asked.get("q")||"";on={};(asked.get("s")||"").split("").forEach(function(state){if(words[state])on[state]=true});
 press();again();id("table").scrollIntoView();
}
id("q").oninput=function(){again();keep()};
id("find").onsubmit=function(event){event.preventDefault()};
id("clear").onclick=function(){id("q").value="";on={};press();again();keep();id("q").focus()};
id("more").onclick=function(){shown+=50;draw()};
all(".chip").forEach(function(chip){chip.onclick=function(){on[chip.dataset.s]=!on[chip.dataset.s];press();again();keep()}});
all("#boundaries th button").forEach(function(button){button.onclick=function(){
 var key=+button.dataset.k,head=button.parentNode;
 sort={key:key,way:sort.key===key?-sort.way:key>2?-1:1};
 all("#boundaries th[aria-sort]").forEach(function(one){one.setAttribute("aria-sort","none")});
 head.setAttribute("aria-sort",sort.way>0?"ascending":"descending");draw();
}});
addEventListener("hashchange",read);
document.addEventListener("click",function(event){
 var button=event.target.closest(".copy");if(!button)return;
 var text=button.dataset.copy,label=button.firstElementChild||button,before=label.textContent;
 function done(){label.textContent="✓";setTimeout(function(){label.textContent=before},1200)}
 function select(){var range=document.createRange();range.selectNodeContents(button.parentNode.querySelector("code"));var chosen=getSelection();chosen.removeAllRanges();chosen.addRange(range);document.execCommand("copy");done()}
 if(navigator.clipboard)navigator.clipboard.writeText(text).then(done,select);else select();
});
addEventListener("beforeprint",function(){all("details").forEach(function(one){one.dataset.was=one.open?"1":"";one.open=true})});
addEventListener("afterprint",function(){all("details").forEach(function(one){one.open=!!one.dataset.was})});
if("IntersectionObserver" in window){
 var links={};all(".rail li a").forEach(function(link){links[link.getAttribute("href").slice(1)]=link});
 var seen=new IntersectionObserver(function(entries){entries.forEach(function(entry){
  if(!entry.isIntersecting||!links[entry.target.id])return;
  Object.keys(links).forEach(function(name){links[name].removeAttribute("aria-current")});
  links[entry.target.id].setAttribute("aria-current","true");
 })},{rootMargin:"-10% 0px -75% 0px"});
 all("main section").forEach(function(section){seen.observe(section)});
}
shown=Math.min(first,rows.length);draw();read();
})();
