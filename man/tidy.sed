# Of go-md2man's output: no paragraph begins right behind a heading, and constant width is bold, which terminals have.
/^\.SH/{
n
/^\.PP$/d
}
# A long cell that is not the last of its row ends on the line on which the next one begins.
/^T}$/{
N
s/^T}\n\t/T}\t/
/\n/{
P
D
}
}
s/\\fC/\\fB/g
