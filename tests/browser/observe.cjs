// node observe.cjs PAGES OUT CHROMIUM: opens each page of the JSON list PAGES in headless Chromium and writes what was seen to OUT/observed.json.
// It judges nothing; test_page_in_browser.py does. Screenshots and PDFs of PAGES.drawn lie in OUT.
"use strict";
const fs = require("fs"), path = require("path"), os = require("os");
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [, , list, out, executablePath] = process.argv;
const WIDTHS = [360, 390, 768, 1280];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const overflow = page => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const rows = page => page.$$eval("#boundaries tbody tr", list => list.map(row => row.innerText.split(/\t|\n/).map(cell => cell.trim())));

async function open(browser, file, options, seen) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.on("console", message => seen.console.push(message.type() + ": " + message.text()));
  page.on("pageerror", error => seen.console.push("error: " + error.message));
  page.on("request", request => { if (request.url().split(/[?#]/)[0] !== "file://" + encodeURI(file)) seen.requests.push(request.url()); });
  await page.goto("file://" + file);
  return page;
}

// The structure is the same in both themes: in the second only what colours can change is asked.
async function violations(page, rules) {
  await page.evaluate(axe);
  return page.evaluate(async only => (await window.axe.run(document, { resultTypes: ["violations"], ...(only ? { runOnly: only } : {}) })).violations.map(one => one.id + ": " + one.nodes.slice(0, 3).map(node => node.target.join(" ") + " " + (node.any[0] || {}).message).join(" | ")), rules);
}

async function looks(browser, name, file, drawn) {
  const seen = { console: [], requests: [], overflow: {}, axe: {}, ground: {} };
  const page = await open(browser, file, { colorScheme: "light" }, seen);
  await page.evaluate(() => document.querySelectorAll("details").forEach(one => { one.open = true; }));
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    seen.overflow[width] = await overflow(page);
    if (drawn && (width === 390 || width === 1280)) await page.screenshot({ path: path.join(out, `${name}.${width}.png`), fullPage: true });
  }
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    seen.axe[colorScheme] = await violations(page, colorScheme === "dark" ? ["color-contrast", "link-in-text-block"] : null);
    seen.ground[colorScheme] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  }
  if (drawn) {
    await page.screenshot({ path: path.join(out, `${name}.dark.png`), fullPage: true });
    const pdf = await page.pdf({ path: path.join(out, `${name}.pdf`), preferCSSPageSize: true });
    seen.pdf_pages = (pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) || []).length;
  }
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  seen.print = await page.evaluate(() => ({
    ground: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    rail: getComputedStyle(document.querySelector(".rail")).display,
    filter: getComputedStyle(document.querySelector("#find")).display,
  }));
  await page.context().close();
  const bare = await open(browser, file, { javaScriptEnabled: false, viewport: { width: 390, height: 800 } }, seen);
  const shown = async what => (await bare.locator(what).all()).length && bare.locator(what).first().isVisible();
  seen.without_script = {
    lead: await bare.locator("#conclusion").innerText(),
    rows: await bare.locator("#boundaries tbody tr").count(),
    filter: await shown("#find"), copy: await shown(".copy"),
  };
  await bare.context().close();
  return seen;
}

async function acts(browser, file) {
  const seen = { console: [], requests: [] };
  const page = await open(browser, file, { acceptDownloads: false }, seen);
  const state = async () => ({ rows: await rows(page), count: await page.innerText("#count"), hash: await page.evaluate(() => location.hash) });
  seen.first = await state();
  await page.fill("#q", "layers.1 resid");
  seen.filtered = await state();
  await page.fill("#q", "f2");
  seen.by_finding = await state();
  await page.fill("#q", "");
  await page.click('.chip[data-s="r"]');
  await page.click('.chip[data-s="o"]');
  seen.chips = await state();
  seen.pressed = await page.$$eval(".chip", chips => chips.map(chip => chip.dataset.s + chip.getAttribute("aria-pressed")));
  await page.click('#boundaries button[data-k="5"]');
  seen.sorted = await state();
  seen.aria = await page.$$eval("#boundaries th[aria-sort]", heads => heads.map(head => head.getAttribute("aria-sort")));
  await page.click('#boundaries button[data-k="5"]');
  seen.sorted_back = await state();
  await page.fill("#q", "no such boundary");
  seen.none = { ...(await state()), said: await page.locator("#none").isVisible() };
  await page.click("#clear");
  seen.cleared = await state();
  await page.goto("file://" + file + "#table?q=layers.2&s=f");
  seen.sent = await state();
  await page.evaluate(() => { location.hash = "#table?q=q.out"; });
  await page.waitForFunction(() => document.getElementById("q").value === "q.out");
  seen.changed = await state();
  await page.click("#theme");
  seen.theme = await page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
  seen.opened = await page.evaluate(() => {
    const all = [...document.querySelectorAll("details")], before = all.map(one => one.open);
    dispatchEvent(new Event("beforeprint"));
    const during = all.map(one => one.open);
    dispatchEvent(new Event("afterprint"));
    return [before, during, all.map(one => one.open)];
  });
  await page.evaluate(() => document.querySelector("details").open = true);
  await page.locator(".copy").first().scrollIntoViewIfNeeded();
  await page.locator(".copy:visible").first().click();
  await page.locator(".copy:visible", { hasText: "✓" }).first().waitFor({ timeout: 5000 }).catch(() => {});
  seen.copied = await page.locator(".copy:visible").first().innerText();
  seen.focus = await page.evaluate(() => {
    document.querySelectorAll("details").forEach(one => { one.open = true; });
    const list = [...document.querySelectorAll("a[href],button,input,summary,[tabindex='0']")].filter(one => one.getClientRects().length);
    return list.filter(one => { one.focus(); return document.activeElement !== one; }).map(one => one.outerHTML.slice(0, 80));
  });
  seen.small = await page.evaluate(() => [...document.querySelectorAll("button,input,summary,.fid")].filter(one => one.offsetParent !== null && one.getBoundingClientRect().height < 23.5).map(one => one.outerHTML.slice(0, 80)));
  await page.context().close();
  return seen;
}

async function grows(browser, file) {
  const seen = { console: [], requests: [] };
  const page = await open(browser, file, {}, seen);
  seen.drawn = (await rows(page)).length;
  await page.click("#more");
  seen.more = (await rows(page)).length;
  seen.count = await page.innerText("#count");
  await page.context().close();
  return seen;
}

(async () => {
  const pages = JSON.parse(fs.readFileSync(list, "utf8"));
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "report-"));
  const browser = await chromium.launch({ executablePath, args: FLAGS, env: { ...process.env, HOME: profile } });
  const observed = { looks: {} };
  try {
    for (const [name, file] of Object.entries(pages.looks)) observed.looks[name] = await looks(browser, name, file, pages.drawn.includes(name));
    observed.acts = await acts(browser, pages.acts);
    observed.grows = await grows(browser, pages.grows);
  } finally {
    await browser.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
  fs.writeFileSync(path.join(out, "observed.json"), JSON.stringify(observed, null, 1));
})().catch(error => { console.error(error); process.exit(1); });
