"""CSV and SVG of a figure, by gnuplot."""

import statistics
import subprocess


def gnuplot(script):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def quoted(text):
    return '"' + str(text).replace('"', "'") + '"'


def bars(path, title, unit, series, log=False):
    """Medians with their spread, one bar a label: {label: [values]}."""
    with open(f"{path}.csv", "w", encoding="utf-8") as file:
        file.write("label,median,min,max\n")
        for label, values in series.items():
            file.write(f"{quoted(label)},{statistics.median(values):.6g},"
                       f"{min(values):.6g},{max(values):.6g}\n")
    width = max(480, 70 * len(series) + 300)
    gnuplot(f"""
set terminal svg size {width},480 font "sans,11" background "white"
set output {quoted(path + '.svg')}
set datafile separator comma
set title {quoted(title)} noenhanced
set ylabel {quoted(unit)} noenhanced
set xtics rotate by -25 noenhanced
set rmargin 24
set bmargin 11
set style fill solid 0.6
set boxwidth 0.6
set grid ytics
unset key
{'set logscale y' if log else 'set yrange [0:*]'}
plot {quoted(path + '.csv')} skip 1 using 0:2:xtic(1) with boxes linecolor rgb "#4477aa", \\
  '' skip 1 using 0:2:3:4 with errorbars linecolor rgb "#222222" pointtype 0
""")


def lines(path, title, xlabel, ylabel, series, log="", steps=False):
    """Curves: {label: [(x, y), …]}."""
    labels = list(series)
    for i, label in enumerate(labels):
        with open(f"{path}_{i}.csv", "w", encoding="utf-8") as file:
            file.write(f"{quoted(xlabel)},{quoted(label)}\n")
            for x, y in series[label]:
                file.write(f"{x:.6g},{y:.6g}\n")
    curves = ", ".join(
        f"{quoted(f'{path}_{i}.csv')} skip 1 using 1:2 with "
        f"{'steps' if steps else 'linespoints'} linewidth 2 title {quoted(label)} noenhanced"
        for i, label in enumerate(labels))
    gnuplot(f"""
set terminal svg size 760,460 font "sans,11" background "white"
set output {quoted(path + '.svg')}
set datafile separator comma
set title {quoted(title)} noenhanced
set xlabel {quoted(xlabel)} noenhanced
set ylabel {quoted(ylabel)} noenhanced
set format "%g"
set grid
set key outside right
{f'set logscale {log}' if log else ''}
plot {curves}
""")
