// SPDX-License-Identifier: GPL-2.0-only
//! A campaign as one page that needs nothing else: plots, and tables that a click on a column
//! sorts. Whatever comes from a campaign's file or a workload is text there and no markup.

use std::fmt::Write;

use super::gain_plot;
use super::rows::{Line, Table};
use super::{markdown, rows};
use crate::compare::tables::{figure, interval, metric, ratio};
use freqlock::estimate::Verdict;

const PAGE: &str = include_str!("sortable_page.html");
const STYLE: &str = include_str!("sortable_page.css");
const SCRIPT: &str = include_str!("sortable_page.js");

const HEADER: [&str; 11] = [
    "machine",
    "workload",
    "metric",
    "scheduler",
    "median",
    "95% interval",
    "ratio",
    "95% interval",
    "q",
    "verdict",
    "best",
];

pub fn text(table: &Table) -> Result<String, gain_plot::Error> {
    let mut plots = String::new();
    for place in &table.machines {
        // Writing to a string cannot fail.
        writeln!(
            plots,
            "<p><b>{}</b>: {}</p>",
            escaped(&place.label),
            escaped(&place.record.machine.to_string())
        )
        .ok();
        plots.push_str(&gain_plot::svg(table, place)?.unwrap_or_default());
    }
    let losses = table.with(Verdict::Loss).into_iter();
    let parts = [
        ("{style}", STYLE.into()),
        ("{summary}", preformatted(&markdown::summary(table))),
        ("{losses}", sortable(losses)),
        ("{behind}", sortable(table.behind().into_iter())),
        ("{plots}", plots),
        ("{all}", sortable(table.lines.iter())),
        ("{schedulers}", preformatted(&markdown::schedulers(table))),
        ("{failures}", preformatted(&markdown::failures(table))),
        ("{method}", escaped(markdown::METHOD)),
        ("{script}", SCRIPT.into()),
    ];
    // One pass, that no text of a campaign is taken for a place of the page.
    let mut out = String::new();
    let mut rest = PAGE;
    while let Some((at, (name, part))) = (parts.iter())
        .filter_map(|part| Some((rest.find(part.0)?, part)))
        .min_by_key(|(at, _)| *at)
    {
        out.push_str(&rest[..at]);
        out.push_str(part);
        rest = &rest[at + name.len()..];
    }
    out.push_str(rest);
    Ok(out)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn preformatted(text: &str) -> String {
    format!("<pre>{}</pre>", escaped(text.trim_end()))
}

fn sortable<'a>(lines: impl Iterator<Item = &'a Line>) -> String {
    let mut out = String::from("<table><thead><tr>");
    for name in HEADER {
        write!(out, "<th>{name}</th>").ok();
    }
    out.push_str("</tr></thead><tbody>\n");
    for line in lines {
        out.push_str(&row(line));
    }
    out.push_str("</tbody></table>\n");
    out
}

/// A cell, and what it is sorted by.
type Cell = (String, Option<f64>);

fn row(line: &rows::Line) -> String {
    let row = &line.row;
    let words = |text: String| -> Cell { (text, None) };
    let number = |text: String, value: f64| -> Cell { (text, Some(value)) };
    let none = || words(String::new());
    let (of, range) = match &row.ratio {
        None => (none(), none()),
        Some(of) => (
            number(ratio(of.median), of.median),
            words(interval(of, ratio)),
        ),
    };
    let best = match &line.best {
        None => words("this one".into()),
        Some((best, of)) => number(format!("{best} ({})", ratio(of.median)), of.median),
    };
    let cells: [Cell; HEADER.len()] = [
        words(line.machine.clone()),
        words(row.workload.clone()),
        words(metric(row)),
        words(row.name()),
        number(figure(row.value.median), row.value.median),
        words(interval(&row.value, figure)),
        of,
        range,
        line.q.map_or_else(none, |q| number(format!("{q:.4}"), q)),
        words(line.corrected.map_or("", Verdict::name).into()),
        best,
    ];
    let class = match line.corrected {
        Some(Verdict::Loss) => " class=loss",
        Some(Verdict::Win) => " class=win",
        _ => "",
    };
    let title = line.why.as_deref().unwrap_or_default();
    let mut out = format!("<tr{class} title=\"{}\">", escaped(title));
    for (text, value) in cells {
        let value = value.map_or_else(String::new, |value| format!(" data-value=\"{value}\""));
        write!(out, "<td{value}>{}</td>", escaped(&text)).ok();
    }
    out + "</tr>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(
            escaped("<script>alert('\"&\"')</script>"),
            "&lt;script&gt;alert(&#39;&quot;&amp;&quot;&#39;)&lt;/script&gt;"
        );
    }

    #[test]
    fn the_page_has_a_place_for_each_part_and_loads_nothing() {
        for name in [
            "{style}",
            "{summary}",
            "{losses}",
            "{behind}",
            "{plots}",
            "{all}",
            "{schedulers}",
            "{failures}",
            "{method}",
            "{script}",
        ] {
            assert_eq!(PAGE.matches(name).count(), 1, "{name}");
        }
        for text in [PAGE, STYLE, SCRIPT] {
            assert!(!text.contains("http") && !text.contains("src="), "{text}");
        }
    }
}
