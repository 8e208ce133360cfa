*** Settings ***
Documentation    Our page and Robot Framework's own files are next to each other.

Resource         runs.resource

Suite Setup      Run Suite    forwards.robot


*** Test Cases ***
Plain Robot Names Its Files As In Every Run
    FOR    ${name}    IN    output.xml    log.html    report.html    sla.html    sla.md    junit.xml
        File Should Exist    ${RUN FOLDER}/${name}
    END

Report Leaves Robot Framework's Files As They Are
    ${before} =    Get File    ${RUN FOLDER}/report.html
    ${log} =    Get File    ${RUN FOLDER}/log.html
    Remove File    ${RUN FOLDER}/sla.html
    Report On The Run
    Exit Status Should Be    0
    ${after} =    Get File    ${RUN FOLDER}/report.html
    Should Be Equal    ${before}    ${after}    values=False
    ${after} =    Get File    ${RUN FOLDER}/log.html
    Should Be Equal    ${log}    ${after}    values=False
    File Should Say    report.html    Robot Framework
    File Should Say    sla.html    Forwards
